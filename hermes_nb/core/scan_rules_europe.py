"""The scan's rules for Spanish, French, German and Russian. Data only; the form is in ``scan_rules``.

Folded text has no accents on Latin letters: ``règles`` reads ``regles``, ``für`` reads ``fur``.
"""

from __future__ import annotations

from hermes_nb.core.scan_rules import ALL, CONTEXT, Rule

_TARGET = r"(?:https?://|\bwww\.|[\w.+-]{1,40}@[\w-]{1,40}\.\w{2,}|\bwebhook|\b[\w-]{2,40}\.(?:com|net|org|io|xyz|ru|example|test|site|de|fr|es)\b|\b(?:atacante|servidor externo|servidor remoto|attaquant|serveur externe|serveur distant|angreifer\w*|externen? server|fremden? server)\b|(?:злоумышленник\w*|внешн\w+ сервер|удаленн\w+ сервер|атакующ\w+))"
_FILES = r"(?:~/\.ssh|\.env\b|/etc/(?:passwd|shadow)|id_rsa|\.aws/credentials)"

# --- Spanish

_ES_NOT = r"\b(?:no|nunca|jamas|puedes?|podr\w+|pueden?|sin|evita\w*|intenta\w*|si)\s+(?:\w+\s+)?$"
_ES_IGNORE = r"\b(?:ignor(?:a|e|ar|es|ad|en|ando)|olvid(?:a|e|ar|ate|es|en|ando|emos|ese|alo)|olvidate|descart(?:a|e|ar|en)|omit(?:e|a|ir)|desestim(?:a|e|ar)|desobede(?:ce|zca|cer)|anul(?:a|e|ar)|sobrescrib(?:e|a|ir)|pas(?:a|e|ar) por alto|hag?(?:a|as)? caso omiso|haz caso omiso|hacer caso omiso|no (?:\w+ )?(?:hagas caso|sigas|siga|obedezcas|obedezca|cumplas|respetes|tengas en cuenta|prestes atencion|tomes en cuenta|hagas)|dej(?:a|e|ar) de (?:seguir|obedecer|cumplir|lado)|prescind(?:e|a|ir)|elimin(?:a|e)|suprim(?:e|a)|burl(?:a|ar)|evad(?:e|ir)|salt(?:a|e)(?:te|r|rse)?|cancel(?:a|e)|revoc(?:a|ar))\b"
_ES_ORDERS = r"\b(?:instruccion(?:es)?|ordenes|indicacion(?:es)?|directrices|directivas?|reglas|normas|prompts?|comandos|mensajes?|restricciones|pautas|politicas?|limitaciones|programacion|entrenamiento|consignas?|contexto)\b"
_ES_BEFORE = r"\b(?:anterior(?:es|mente)?|previ[oa]s?|precedentes?|arriba|tod[oa]s?|original(?:es)?|inicial(?:es)?|recibid[oa]s?|tus?|sus?|mis?|sistema|dad[oa]s?|hasta ahora|hasta este momento|antes|seguridad|existentes|previamente|dij\w+|ha[sn]? recibido|dieron)\b"

# --- French

_FR_NOT = r"(?:\bne\s+|\bn.|\bpouvez\s+|\bpeut\s+|\bpeux\s+|\bpour\s+|\bsans\s+|\bjamais\s+|\ba\s+)(?:\w+\s+)?$"
_FR_IGNORE = r"\b(?:ignor(?:e|ez|er|ons|ant)|oubli(?:e|ez|er|ons)|neglige(?:z|r)?|fai(?:s|tes) abstraction|ne (?:\w+ )?(?:tiens|tenez|suis|suivez|respecte|respectez|prends|prenez|tien)\b(?: \w+){0,3}|ne pas (?:suivre|tenir compte|respecter)|n.(?:obei\w*|ecoute[sz]?|applique[sz]?)|cesse[rz]? de (?:suivre|respecter)|arrete[rz]? de (?:suivre|respecter)|abandonne[rz]?|ecarte[rz]?|outrepasse[rz]?|contourne[rz]?|annule[rz]?|remplace[rz]?|ecrase[rz]?|passe[rz]? outre|laisse[rz]? tomber|laisse[rz]? de cote|mets? de cote|mettez de cote|desobei\w*|efface[rz]?|supprime[rz]?|meprise[rz]?|fais fi|faites fi)\b"
_FR_ORDERS = r"\b(?:instructions?|consignes?|directives?|regles?|ordres|prompts?|commandes|messages?|restrictions|lignes directrices|contraintes|politiques?|limites|programmation|entrainement|indications?|contexte)\b"
_FR_BEFORE = r"\b(?:precedent(?:e?s?)|precedemment|anterieure?s?|ci-?dessus|plus haut|toutes?|tous|initiale?s?|initiaux|originale?s?|d.origine|recues?|tes|ton|ta|vos|votre|mes|systeme|donnees?|jusqu.(?:a present|ici|a maintenant)|avant|securite|existantes?|prealables?|as recu\w*|avez recu\w*|qu.on (?:t|vous).a)\b"

# --- German

_DE_NOT = r"\b(?:nicht|kann|konnen|darf|durfen|konnt\w+|nie|niemals|ohne|wenn|um|zu)\s+(?:\w+\s+)?$"
_DE_IGNORE = r"\b(?:ignorier(?:e|en|t|st|ung)?|zu ignorieren|vergiss|vergesst|vergessen(?: sie)?|missacht(?:e|en|et)|beacht(?:e|en|et)(?: \w+){0,6} nicht(?: mehr)?|befolg(?:e|en|t)(?: \w+){0,6} nicht(?: mehr)?|(?:keine|nicht)(?: \w+){0,3} (?:beachten|befolgen|folgen|einhalten)|folge(?:n sie)?(?: \w+){0,6} nicht(?: mehr)?|halte dich nicht(?: mehr)?|nicht (?:mehr )?(?:beachten|befolgen)|verwirf|verwerf(?:e|en|t)|uberschreib(?:e|en|t)|ubergeh(?:e|en|t)|uberspring(?:e|en|t)|umgeh(?:e|en|t)|setz\w*(?: \w+){0,6} ausser kraft|ausser acht|losch(?:e|en)|streich(?:e|en)|hebe?(?: \w+){0,6} auf|hor auf|verlass(?:e|en)?|lass(?:e|en|t)?(?: \w+){0,5} (?:hinter dir|beiseite|fallen))\b"
_DE_ORDERS = r"\b(?:anweisung(?:en)?|instruktion(?:en)?|vorgaben?|regeln|richtlinien|befehle?n?|(?:system)?-?prompts?|systemanweisung(?:en)?|systemnachricht(?:en)?|nachrichten|anordnungen|beschrankungen|einschrankungen|leitlinien|kontext|hinweise|sicherheits\w+|programmierung|training|auftrage?|aufgaben)\b"
_DE_BEFORE = r"\b(?:vorherig\w*|vorig\w*|bisherig\w*|fruher\w*|obig\w*|oben|vorangegangen\w*|vorangehend\w*|vorhergehend\w*|vorstehend\w*|alle[sn]?|samtliche\w*|ursprunglich\w*|urspr\w+|anfanglich\w*|system\w*|deine[rnm]?|ihre[rn]?|meine|erhalten\w*|gegeben\w*|bis jetzt|bisher|zuvor|davor|bestehende\w*|sicherheits\w*)\b"

# --- Russian

_RU_NOT = r"\b(?:не|нельзя|можно|можете|никогда|чтобы|если|может|могут)\s+(?:\w+\s+)?$"
_RU_IGNORE = r"\b(?:игнорируй(?:те)?|проигнорируй(?:те)?|игнорировать|игнорируя|забудь(?:те)?|забыть|позабудь(?:те)?|отбрось(?:те)?|отмени(?:те)?|пренебреги(?:те)?|не (?:\w+ )?(?:обращай(?:те)?|следуй(?:те)?|выполняй(?:те)?|слушай(?:те)?|соблюдай(?:те)?|подчиняй(?:ся|тесь)|учитывай(?:те)?|придерживай(?:ся|тесь))|перестань(?:те)? (?:следовать|соблюдать|выполнять)|прекрати(?:те)? (?:следовать|соблюдать|выполнять)|обойди(?:те)?|обходи|нарушь(?:те)?|нарушай|перезапиши(?:те)?|замени(?:те)?|сбрось(?:те)?|удали(?:те)?|отключи(?:те)?|пропусти(?:те)?|откажись от|оставь(?:те)? без внимания|аннулируй(?:те)?|сотри(?:те)?)\b"
_RU_ORDERS = r"\b(?:инструкци\w+|указани\w+|правил\w*|команд\w*|промпт\w*|директив\w*|ограничени\w+|приказ\w*|сообщени\w+|установк\w+|предписани\w+|рекомендаци\w+|политик\w*|распоряжени\w+|контекст\w*|запрет\w*|настройк\w+|подсказк\w+|обучени\w+)\b"
_RU_BEFORE = r"\b(?:предыдущ\w+|прежн\w+|предшествующ\w+|выше\w*|все[хм]?|всю|весь|любы\w*|изначальн\w+|первоначальн\w+|исходн\w+|системн\w+|полученн\w+|данны[ехм]\w*|сво[иеюй]\w*|тво[иеюй]\w*|ваши\w*|мои\w*|раньше|ранее|до этого|прошлы\w+|заданн\w+|начальн\w+|безопасност\w+|старые|старых|вышеуказанн\w+|вышеперечисленн\w+)\b"

RULES: tuple[Rule, ...] = (
    # Spanish
    Rule("prompt_injection", ALL, _ES_IGNORE, (_ES_ORDERS, _ES_BEFORE), 60, unless=_ES_NOT),
    Rule(
        "prompt_injection",
        ALL,
        r"\b(?:ignora|ignore|olvida|olvide|olvidate|olvidese|descarta|haz caso omiso)\b",
        (
            r"\b(?:todo|lo|cualquier cosa)\b",
            r"\b(?:anterior|antes|previo|arriba|dicho|dije|dicen|dijeron|hablado|hasta ahora)\b",
        ),
        40,
        unless=_ES_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\b(?:restricciones|restriccion|limites|limitaciones|filtros?|censura|reglas|normas|etica|eticas?|moral(?:es)?|politicas)\b",
        (
            r"\b(?:sin|ningun\w*|libre de|ni|elimina\w*|desactiva\w*|ignorando|quita\w*|omite|evita|salta\w*|no tienes|no tiene|burla\w*|deshabilita\w*)\b",
            r"\b(?:eres|actua\w*|responde\w*|contesta\w*|comportate|asistente|ia|modelo|finge|modo|tus|puedes|tienes|ahora|chatbot|serias|seras|tienen?|habla)\b",
        ),
        45,
    ),
    Rule(
        "role_hijack",
        CONTEXT,
        r"\b(?:ahora (?:eres|seras|vas a (?:ser|actuar)|actuas|te llamas)|a partir de (?:ahora|este momento),? (?:\w+ )?(?:eres|seras|vas a|actua\w*|actuaras|te llamas|responde\w*|obedece\w*|tu|debes (?:actuar|responder|obedecer))|desde ahora,? (?:eres|seras|actua\w*|responde\w*)|ya no eres|de ahora en adelante,? (?:eres|seras|actua\w*|responde\w*|obedece\w*))\b",
        (
            r"\b(?:un|una|el|ia|asistente|bot|chatbot|modelo|hacker|dan|sin|restriccion\w*|reglas|modo|como|mis?|llamad\w*|libre|experto|ordenes|todo|obedece\w*)\b",
        ),
        50,
    ),
    Rule(
        "role_pretend",
        CONTEXT,
        r"\b(?:finge|fingir|actua|actuar|haz(?:te)? pasar|simula|imagina|interpreta|comportate|juega el papel|responde)\b",
        (
            r"\b(?:como|que|ser|eres|un|una|papel)\b",
            r"\b(?:sin (?:\w+ ){0,2}(?:restricciones|limites|limitaciones|filtros|reglas|etica|censura|moral)|hacker|malvad\w+|malicios\w+|dan|criminal|abuela|no tiene\w* (?:restricciones|limites|reglas|filtros))\b",
        ),
        60,
    ),
    Rule(
        "leak_system_prompt",
        ALL,
        r"\b(?:(?:prompt|mensaje|instruccion(?:es)?|indicaciones|configuracion|ordenes|reglas|directrices)(?: \w+){0,2} (?:del? sistema|inicial(?:es)?|original(?:es)?|ocult[oa]s?|intern[oa]s?|secret[oa]s?|complet[oa]s?|de sistema|recibid\w+|anterior(?:es)?)|system prompt|(?:tus|sus) (?:instrucciones|ordenes|reglas|directrices|indicaciones)|tu (?:prompt|configuracion|programacion)|(?:texto|todo|palabras|contenido)(?: \w+){0,2} (?:anterior|de arriba|por encima))\b",
        (
            r"\b(?:muestra\w*|muestre\w*|revela\w*|revele\w*|imprime|imprima|repite|repita|dime|diga\w*|escribe|escriba|ensena\w*|comparte|copia|proporciona\w*|filtra\w*|expon\w*|enumera|lista|traduce|cual(?:es)?|devuelve|dame|deme|cuenta\w*|resume)\b",
        ),
        50,
        unless=_ES_NOT,
    ),
    Rule(
        "deception_hide",
        ALL,
        r"\b(?:no|sin|nunca|jamas) (?:\w+ ){0,2}(?:dig\w+|inform\w+|menci\w+|revel\w+|cuent\w+|avis\w+|notifi\w+|coment\w+|decir\w*|decirl\w+|alert\w+|sepa)\b",
        (r"\b(?:al usuario|el usuario|la usuaria|usuarios?|nadie|a nadie)\b",),
        30,
    ),
    Rule(
        "deception_hide",
        ALL,
        r"\b(?:ocult\w+|en secreto|secretamente|a escondidas|sin que)\b",
        (
            r"\b(?:usuario|usuaria|nadie)\b",
            r"\b(?:envi\w+|ejecut\w+|sepa|entere|ocult\w+|copia|reenv\w+|sub\w+|borr\w+|note)\b",
        ),
        40,
    ),
    Rule(
        "exfil_text",
        ALL,
        r"(?:\b(?:contrasenas?|claves?|credenciales|tokens?|variables de entorno|historial|conversacion(?:es)?|datos (?:\w+ )?(?:del usuario|personales|privados|sensibles|confidenciales)|informacion (?:\w+ )?(?:personal|confidencial|privada|sensible|del usuario)|api keys?|system prompt|prompt del sistema|secretos|archivos|ficheros|cookies|contenido)\b|~/\.ssh|\.env\b|/etc/passwd)",
        (
            r"\b(?:envia\w*|envie\w*|manda\w*|mande\w*|sube|suba|publica|publique|reenvia\w*|reenvie|transmite|filtra\w*|exfiltra\w*|remite|postea|adjunta|incluye|codifica)\b",
            _TARGET,
        ),
        80,
        unless=_ES_NOT,
    ),
    Rule(
        "new_instructions",
        ALL,
        r"\b(?:nuevas? (?:instruccion(?:es)?|ordenes|reglas|tarea|directrices|directiva|mision)|siguientes (?:instrucciones|ordenes)|instrucciones (?:nuevas|reales|actualizadas))\b",
        (
            r"\b(?:ignora|ignore|olvida|olvide|en su lugar|ahora|solo|unicamente|obedece\w*|debes|revela\w*|envia\w*|prioridad|sustituyen|reemplazan|anulan)\b",
            r"(?::|\b(?:son|es|sigue|siga|obedece\w*|cumple|ejecuta|sustituyen|reemplazan|anulan)\b)",
        ),
        50,
        across=True,
        unless=_ES_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\bmodo (?:desarrollador|dan|dios|sin restricciones|jailbreak|depuracion|administrador|mantenimiento|libre|root)\b",
        (
            r"\b(?:eres|estas|entra\w*|activa\w*|ahora|responde\w*|actua\w*|cambia|habilitado|tus)\b",
            r"\b(?:eres|estas|ahora|responde\w*|actua\w*|restriccion\w*|sin|filtros?|tus|entra en|todo)\b",
        ),
        45,
    ),
    # French
    Rule("prompt_injection", ALL, _FR_IGNORE, (_FR_ORDERS, _FR_BEFORE), 60, unless=_FR_NOT),
    Rule(
        "prompt_injection",
        ALL,
        r"\b(?:ignore|ignorez|oublie|oubliez|fais abstraction|faites abstraction|laisse tomber|ne tiens pas compte|ne tenez pas compte)\b",
        (
            r"\b(?:tout|ce|toute)\b",
            r"\b(?:precede\w*|avant|ci-?dessus|dit|plus haut|jusqu.ici|jusqu.a present|dites?|precedemment|ecrit|recu)\b",
        ),
        40,
        unless=_FR_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\b(?:restrictions?|limites?|limitations?|filtres?|censure|regles?|ethiques?|morale?s?|politiques?|contraintes?|tabous?)\b",
        (
            r"\b(?:sans|aucune?s?|libre de|ni|supprime\w*|desactive\w*|ignorant|leve[rz]?|contourne\w*|affranchi\w*|plus de|plus soumis|libere\w*|echappe\w*|pas de)\b",
            r"\b(?:tu es|vous etes|agi[srt]\w*|repond\w*|comporte\w*|assistant|ia|modele|fai[st]\w* semblant|mode|tes|vos|peux|maintenant|chatbot|as|avez|n.as|n.avez|es)\b",
        ),
        45,
    ),
    Rule(
        "role_hijack",
        CONTEXT,
        r"\b(?:(?:tu es|vous etes|tu n.es|vous n.etes|tu deviens|vous devenez|tu seras|vous serez|tu t.appelles)(?: \w+)? (?:maintenant|desormais|dorenavant|plus)|(?:desormais|dorenavant|a partir de maintenant|a compter de maintenant|a partir de cet instant),? (?:\w+ )?(?:tu|vous|agi[srt]\w*|repond\w*|obei\w*)|(?:maintenant|a present),? (?:tu es|vous etes|tu vas (?:jouer|agir|etre)))\b",
        (
            r"\b(?:un|une|ia|assistant|bot|chatbot|modele|hacker|pirate|dan|sans|restriction\w*|regles|mode|comme|mes|mon|nomm\w+|libre|expert|soumis|lie|ordres?|obei\w*|role)\b",
        ),
        50,
    ),
    Rule(
        "role_pretend",
        CONTEXT,
        r"\b(?:fai[st]\w* semblant|agi[srt]\w*|joue[rz]?|simule[rz]?|imagine[rz]?|comporte[rz]?|incarne[rz]?|repond\w*|pretend\w*)\b",
        (
            r"\b(?:comme|que|d.etre|un|une|role|tu)\b",
            r"\b(?:sans (?:\w+ ){0,2}(?:restrictions?|limites?|limitations?|filtres?|regles?|ethique|censure|morale)|hacker|pirate informatique|malveillant\w*|malefique|dan|criminel|grand-?mere|aucune (?:restriction|limite|regle))\b",
        ),
        60,
    ),
    Rule(
        "leak_system_prompt",
        ALL,
        r"\b(?:(?:prompt|message|instructions?|consignes?|directives?|configuration|regles?)(?: \w+){0,2} (?:du systeme|de systeme|systeme|initiale?s?|initiaux|d.origine|originale?s?|cachee?s?|internes?|secrete?s?|completes?|ci-?dessus|recues?|precedentes?)|system prompt|invite systeme|(?:tes|vos) (?:instructions?|consignes|directives|regles)|(?:ton|votre) (?:prompt|invite)|(?:texte|tout|mots|contenu)(?: \w+){0,3} (?:ci-?dessus|precede\w*|au-?dessus))\b",
        (
            r"\b(?:montre\w*|affiche\w*|revele\w*|repete\w*|di(?:s|tes)|donne\w*|ecri[stv]\w*|imprime\w*|partage\w*|copie\w*|divulgue\w*|expose\w*|liste[rz]?|enumere\w*|tradui\w*|quel(?:le)?s?|fourni\w*|recopie\w*|recite\w*|communique\w*|resume\w*)\b",
        ),
        50,
        unless=_FR_NOT,
    ),
    Rule(
        "deception_hide",
        ALL,
        r"(?:\b(?:ne|n.|sans|jamais)[ ']?(?:(?:le|la|lui|en|pas|jamais|rien|surtout|y) ){0,3}(?:di(?:s|tes|re)|inform\w+|mentionn\w+|revel\w+|parl\w+|previen\w*|avert\w+|signal\w+|notifi\w+|prevenir|divulgu\w+|indiqu\w+))\b",
        (r"\b(?:utilisateurs?|utilisatrice|personne|usager)\b",),
        35,
    ),
    Rule(
        "deception_hide",
        ALL,
        r"\b(?:cache[rz]?|dissimule[rz]?|secretement|en secret|discretement|a l.insu|en cachette)\b",
        (
            r"\b(?:utilisateur|utilisatrice|personne)\b",
            r"\b(?:envoi\w*|envoy\w*|execut\w*|cache[rz]?|dissimul\w*|copi\w*|transfer\w*|telechar\w*|supprim\w*|insu)\b",
        ),
        40,
    ),
    Rule(
        "exfil_text",
        ALL,
        r"(?:\b(?:mots? de passe|cles? (?:api|privees?|ssh|secretes?)|identifiants|jetons?|variables d.environnement|historique|conversations?|donnees (?:\w+ )?(?:de l.utilisateur|utilisateur|personnelles|privees|sensibles|confidentielles)|informations (?:\w+ )?(?:personnelles|confidentielles|sensibles|privees|de l.utilisateur)|api keys?|system prompt|prompt systeme|secrets|fichiers|cookies|contenu)\b|~/\.ssh|\.env\b|/etc/passwd)",
        (
            r"\b(?:envoi\w*|envoy\w*|transmet\w*|poste[rz]?|publie[rz]?|transfere\w*|exfiltre\w*|televerse\w*|telecharge\w*|communique\w*|joins|joignez|inclus|incluez|encode\w*|expedie\w*|fai\w* suivre)\b",
            _TARGET,
        ),
        80,
        unless=_FR_NOT,
    ),
    Rule(
        "new_instructions",
        ALL,
        r"\b(?:nouvelles? (?:instructions?|consignes?|regles?|tache|directives?|mission)|(?:instructions|consignes|directives) suivantes|nouveaux ordres|instructions (?:reelles|actualisees))\b",
        (
            r"\b(?:ignore\w*|oublie\w*|a la place|maintenant|uniquement|seulement|obei\w*|dois|devez|revele\w*|envoi\w*|priorite|remplacent|annulent)\b",
            r"(?::|\b(?:sont|est|suis|suivez|obei\w*|execute\w*|remplacent|annulent)\b)",
        ),
        50,
        across=True,
        unless=_FR_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\bmode (?:developpeur|dan|dieu|sans restrictions?|jailbreak|debogage|administrateur|maintenance|libre|root|debridee?)\b",
        (
            r"\b(?:tu|vous|entre[rz]?|active[rz]?|maintenant|repond\w*|passe[rz]?|tes|desormais)\b",
            r"\b(?:tu|vous|maintenant|repond\w*|restrictions?|sans|filtres?|tes|tout)\b",
        ),
        45,
    ),
    # German
    Rule("prompt_injection", ALL, _DE_ORDERS, (_DE_IGNORE, _DE_BEFORE), 60, unless=_DE_NOT),
    Rule(
        "prompt_injection",
        ALL,
        r"\b(?:ignorier(?:e|t|en)|vergiss|vergesst|vergessen|missachte)\b",
        (
            r"\b(?:alles|das)\b",
            r"\b(?:vorherige|bisherige|obige|oben|zuvor|bisher|davor|vorher|vorangegangene|gesagt\w*|vorstehende|bis jetzt)\b",
        ),
        40,
        unless=_DE_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\b(?:einschrankungen|beschrankungen|grenzen|filtern?|zensur|regeln|ethi\w+|moral\w*|richtlinien|sicherheits(?:filter|vorkehrungen|massnahmen|richtlinien|mechanismen|vorgaben|regeln)\w*|limits|tabus|limitierungen)\b",
        (
            r"\b(?:ohne|keine(?:rlei|n|r)?|frei von|deaktivier\w*|entfern\w*|umgeh\w*|nicht gelten|gelten nicht|aufgehoben|schalte\w*|abschalt\w*|ausschalt\w*|befreit|heb\w*|nicht mehr|unabhangig von|ignorier\w*|losgelost)\b",
            r"\b(?:du|sie|dich|dir|deine\w*|antworte\w*|handle|verhalte\w*|assistent|zu antworten|ki|modell|modus|chatbot|agiere|hast|bist)\b",
        ),
        45,
    ),
    Rule(
        "role_hijack",
        CONTEXT,
        r"\b(?:(?:du bist|sie sind|du wirst|du heisst|du agierst|du handelst) (?:jetzt|nun|ab (?:jetzt|sofort)|nicht (?:mehr|langer)|von nun an|fortan|kein\w* \w+ mehr)|(?:ab (?:jetzt|sofort)|von (?:jetzt|nun) an|fortan|kunftig|nunmehr|jetzt) (?:bist|sind|wirst|heisst|agierst|antwortest|handelst|gehorchst|musst|sollst|verhaltst|reagierst|spielst) (?:du|sie)(?: dich)?)\b",
        (
            r"\b(?:ein\w*|ki|assistent|bot|chatbot|modell|hacker|dan|ohne|regeln|modus|als|mein\w*|namens|frei|expert\w*|gebunden|befehl\w*|gehorch\w*|nur|unzensiert\w*|uneingeschrankt\w*|beschrankung\w*|rolle)\b",
        ),
        50,
    ),
    Rule(
        "role_pretend",
        CONTEXT,
        r"\b(?:tu so|tun sie so|stell dir vor|spiel\w*|schlupf\w*|verhalte\w*|gib dich|handle|agiere|simulier\w*|antworte\w*|benimm)\b",
        (
            r"\b(?:als|wie|dass|rolle|ein\w*)\b",
            r"\b(?:ohne (?:\w+ ){0,2}(?:einschrankungen|beschrankungen|grenzen|filter|regeln|ethik|ethische\w*|moral\w*|zensur)|hacker\w*|bosartig\w*|bose\w*|dan|kriminell\w*|verbrecher|grossmutter|oma|keine(?:rlei)? (?:einschrankungen|regeln|grenzen|beschrankungen)|unzensiert\w*|uneingeschrankt\w*)\b",
        ),
        60,
    ),
    Rule(
        "leak_system_prompt",
        ALL,
        r"\b(?:system-?prompts?|systemanweisung(?:en)?|systemnachricht(?:en)?|systemaufforderung|(?:ursprunglich\w*|anfanglich\w*|versteckt\w*|intern\w*|geheim\w*|vollstandig\w*|obig\w*|erhalten\w*|initial\w*|deine[nr]?|ihre|verborgen\w*)(?: \w+){0,2} (?:anweisung(?:en)?|prompts?|instruktion(?:en)?|vorgaben|regeln|konfiguration|richtlinien|befehle)|(?:text|alles|worte|inhalt)(?: \w+){0,2} (?:oben|daruber|davor|uber dieser))\b",
        (
            r"\b(?:zeig\w*|gib|geben|gebe|nenn\w*|verrat\w*|verrate\w*|wiederhol\w*|druck\w*|schreib\w*|sag\w*|teile?|offenbar\w*|offenleg\w*|leg\w*|kopier\w*|list\w*|ubersetz\w*|was (?:ist|sind|steht)|wie lautet|wie lauten|welche|preis|enthull\w*|fass\w*|poste\w*)\b",
            r"\b(?:dein\w*|ihr\w*|mir|vollstandig\w*|wortlich\w*|wort fur wort|komplett\w*|alle|gesamt\w*|ganz\w*|aus|preis|offen|oben|exakt|genau|wortwortlich|unverandert|du)\b",
        ),
        50,
        unless=_DE_NOT,
    ),
    Rule(
        "deception_hide",
        ALL,
        r"\b(?:benutzer\w*|nutzer\w*|user|anwender\w*|niemand\w*|menschen)\b",
        (
            r"\b(?:nicht(?:s)?|ohne|niemals|nie|niemand\w*|kein wort)\b",
            r"\b(?:sag\w*|erzahl\w*|informier\w*|erwahn\w*|verrat\w*|mitteil\w*|mitzuteilen|teile|wissen lassen|wissen|erfahr\w*|bescheid|benachrichtig\w*|merk\w*|offenbar\w*|zu informieren|davon|warn\w*)\b",
            r"\b(?:sag(?:e|en sie)?|erzahl(?:e|en sie)?|informier(?:e|en sie)?|erwahn(?:e|en sie)?|verrat(?:e|en sie)?|teile|lass\w*|ohne|davon|hiervon|daruber|darf|niemand\w*|mitteilen|warn(?:e|en sie)?)\b",
        ),
        40,
        unless=r"\bwenn\b",
    ),
    Rule(
        "deception_hide",
        ALL,
        r"\b(?:heimlich|verheimlich\w*|verschweig\w*|verberg\w*|unbemerkt|hinter dem rucken)\b",
        (
            r"\b(?:benutzer\w*|nutzer\w*|user|anwender\w*|niemand\w*|daten|dateien|passwor\w*|schlussel)\b",
            r"\b(?:send\w*|schick\w*|ausfuhr\w*|fuhr\w*|kopier\w*|verheimlich\w*|verschweig\w*|verberg\w*|ubertrag\w*|hochlad\w*|losch\w*|lad\w*)\b",
        ),
        50,
    ),
    Rule(
        "exfil_text",
        ALL,
        r"(?:\b(?:passwor\w+|api-?(?:schlussel|keys?)|schlussel|zugangsdaten|anmeldedaten|tokens?|umgebungsvariablen|verlauf|chatverlauf|gesprachsverlauf|konversation\w*|unterhaltung|(?:personlich\w*|privat\w*|vertraulich\w*|sensib\w*|geheim\w*) (?:daten|informationen|dateien)|benutzerdaten|nutzerdaten|system-?prompt|geheimnisse|dateien|cookies|inhalt\w*)\b|~/\.ssh|\.env\b|/etc/passwd)",
        (
            r"\b(?:send\w*|sende|schick\w*|ubermittl\w*|ubermittel\w*|ubertrag\w*|hochlad\w*|lade?|leit\w*|poste?n?|exfiltrier\w*|mail\w*|veroffentlich\w*|hang\w*|anhang\w*|kodier\w*|weiterleit\w*)\b",
            _TARGET,
        ),
        80,
        unless=_DE_NOT,
    ),
    Rule(
        "new_instructions",
        ALL,
        r"\b(?:neue[nr]? (?:anweisung(?:en)?|instruktion(?:en)?|regeln|aufgabe|vorgaben|befehle|richtlinien)|folgende[nr]? (?:anweisung(?:en)?|befehle)|(?:echte|aktualisierte)n? anweisungen)\b",
        (
            r"\b(?:ignorier\w*|vergiss|stattdessen|jetzt|nur|ausschliesslich|gehorch\w*|musst|verrat\w*|send\w*|vorrang|ersetzen|uberschreib\w*)\b",
            r"(?::|\b(?:lauten|lautet|sind|folge|befolg\w*|gehorch\w*|fuhr\w*|ersetzen)\b)",
        ),
        50,
        across=True,
        unless=_DE_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\b(?:entwickler-?modus|dan-?modus|gott-?modus|uneingeschrankte\w* modus|jailbreak-?modus|debug-?modus|administrator-?modus|admin-?modus|wartungsmodus|freie\w* modus|root-?modus|unzensierte\w* modus)\b",
        (
            r"\b(?:du|sie|aktivier\w*|jetzt|antwort\w*|wechsl\w*|wechsel|deine|nun|geh\w*)\b",
            r"\b(?:du|jetzt|antwort\w*|beschrankung\w*|einschrankung\w*|ohne|filter|deine|alles|regeln)\b",
        ),
        45,
    ),
    # Russian
    Rule("prompt_injection", ALL, _RU_IGNORE, (_RU_ORDERS, _RU_BEFORE), 60, unless=_RU_NOT),
    Rule(
        "prompt_injection",
        ALL,
        r"\b(?:игнорируй(?:те)?|проигнорируй(?:те)?|забудь(?:те)?|отбрось(?:те)?)\b",
        (
            r"\b(?:все|всё|то)\b",
            r"\b(?:выше\w*|раньше|ранее|до этого|предыдущ\w+|сказан\w+|написан\w+|говорил\w*|прежде|до сих пор|знаешь|сказали)\b",
        ),
        40,
        unless=_RU_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\b(?:ограничени\w+|фильтр\w*|цензур\w+|правил\w*|этик\w+|этическ\w+|морал\w+|запрет\w*|рамок|лимит\w*|политик\w*)\b",
        (
            r"\b(?:без|никаких|нет|не имеешь|не имеет|свободн\w+|отключи\w*|сними\w*|снят\w*|убери\w*|обойди\w*|не связан\w*|не подчиня\w+|лишен\w*|вне|игнорируя|нарушая|больше не)\b",
            r"\b(?:ты|вы|тебя|тебе|твои\w*|свои\w*|отвечай\w*|действуй\w*|веди\w*|ассистент\w*|ии|модель|режим\w*|бот\w*|притвор\w*|отвечаешь|отвечать|помощник\w*|можешь)\b",
        ),
        45,
    ),
    Rule(
        "role_hijack",
        CONTEXT,
        r"\b(?:(?:ты|вы) (?:теперь|отныне|больше не|с этого момента|сейчас)|(?:теперь|отныне|с этого момента|с этой минуты|начиная с этого момента|с настоящего момента),? (?:ты|вы|твоя|твое|тебя|отвечай\w*|действуй\w*))\b",
        (
            r"\b(?:ии|ассистент\w*|бот\w*|чат-?бот\w*|модель\w*|хакер\w*|dan|без|правил\w*|режим\w*|как|мой|моя|мои\w*|зовут|свободн\w+|эксперт\w*|связан\w*|подчиня\w*|отвечаешь|отвечай|роль|должен|должна|ограничен\w*|не|играешь|имя|dаn|помощник\w*)\b",
        ),
        50,
    ),
    Rule(
        "role_pretend",
        CONTEXT,
        r"\b(?:притвор\w+|представь(?:те)?|сыграй(?:те)?|играй(?:те)?|веди себя|действуй(?:те)?|отвечай(?:те)?|вообрази(?:те)?|изобрази(?:те)?|имитируй(?:те)?|выступи(?:те)?)\b",
        (
            r"\b(?:как|что|будто|роль|роли|в)\b",
            r"\b(?:без (?:\w+ ){0,2}(?:ограничени\w+|правил|фильтров|цензуры|морали|этик\w+|запретов|этических)|хакер\w*|злонамеренн\w+|зл(?:ой|ого|ым|ая)|dan|преступник\w*|бабушк\w+|нет (?:\w+ )?(?:ограничени\w+|правил)|никаких (?:ограничени\w+|правил))\b",
        ),
        60,
    ),
    Rule(
        "leak_system_prompt",
        ALL,
        r"\b(?:системн\w+ (?:промпт\w*|сообщени\w+|инструкци\w+|подсказк\w+|запрос\w*)|system prompt|(?:исходн\w+|начальн\w+|первоначальн\w+|изначальн\w+|скрыт\w+|внутренн\w+|секретн\w+|полн\w+|сво[ийюе]\w*|тво[ийюе]\w*|ваши\w*|полученн\w+|предыдущ\w+)(?: \w+){0,2} (?:инструкци\w+|промпт\w*|указани\w+|правил\w*|настройк\w+|конфигураци\w+|директив\w*|подсказк\w+)|(?:текст|все|слова|содержимое)(?: \w+){0,2} выше)\b",
        (
            r"\b(?:покажи\w*|выведи\w*|раскрой\w*|повтори\w*|скажи\w*|напиши\w*|расскажи\w*|назови\w*|распечатай\w*|скопируй\w*|сообщи\w*|перечисли\w*|переведи\w*|како\w+|каки\w+|выдай\w*|опубликуй\w*|предоставь\w*|процитируй\w*|дай|отобрази\w*|перескажи\w*|слей)\b",
        ),
        50,
        unless=_RU_NOT,
    ),
    Rule(
        "deception_hide",
        ALL,
        r"\b(?:пользовател\w+|никому|юзер\w*|человек\w*|оператор\w*)\b",
        (
            r"\b(?:не (?:\w+ )?(?:говори\w*|сообщай\w*|рассказывай\w*|упоминай\w*|раскрывай\w*|уведомляй\w*|информируй\w*|предупреждай\w*|показывай\w* (?:этого|это))|не (?:знал\w*|узнал\w*|заметил\w*|догадал\w*|должен знать|сообщая|уведомляя)|без ведома|скрой\w*|скрыва\w+|утаи\w*|втайне|тайно|незаметно)\b",
        ),
        40,
        unless=r"\bпочему\b",
    ),
    Rule(
        "deception_hide",
        CONTEXT,
        r"\b(?:тайно|незаметно|скрытно|втайне|секретно)\b",
        (r"\b(?:отправ\w+|выполни\w*|перешли\w*|загрузи\w*|скопируй\w*|удали\w*|передай\w*|запусти\w*)\b",),
        40,
    ),
    Rule(
        "exfil_text",
        ALL,
        r"(?:\b(?:парол\w+|api-?ключ\w*|ключ\w*|учетн\w+ данн\w+|токен\w*|переменн\w+ окружения|истори\w+|переписк\w+|диалог\w*|разговор\w*|персональн\w+ данн\w+|личн\w+ (?:данн\w+|информаци\w+)|данн\w+ пользовател\w+|конфиденциальн\w+|секрет\w*|системн\w+ промпт\w*|файл\w*|cookie\w*|содержим\w+|api keys?)\b|~/\.ssh|\.env\b|/etc/passwd)",
        (
            r"\b(?:отправ\w+|пошли\w*|перешли\w*|загрузи\w*|передай\w*|опубликуй\w*|вышли\w*|слей\w*|перенаправ\w+|отошли\w*|выложи\w*|прикрепи\w*|закодируй\w*|добавь\w*)\b",
            _TARGET,
        ),
        80,
        unless=_RU_NOT,
    ),
    Rule(
        "new_instructions",
        ALL,
        r"\b(?:нов\w+ (?:инструкци\w+|указани\w+|правил\w*|задани\w+|задач\w+|директив\w*|приказ\w*)|следующ\w+ (?:инструкци\w+|указани\w+|команд\w+|приказ\w*))\b",
        (
            r"\b(?:игнорируй\w*|забудь\w*|вместо|теперь|только|подчиня\w*|должен|раскрой\w*|отправ\w+|приоритет\w*|заменяют|отменяют)\b",
            r"(?::|-|\b(?:следуй\w*|выполни\w*|выполняй\w*|подчиня\w*|таков\w*|заменяют|отменяют)\b)",
        ),
        50,
        across=True,
        unless=_RU_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\bрежим\w* (?:разработчик\w*|dan|бога|без ограничений|отладки|администратор\w*|обслуживания|джейлбрейк\w*|свободы|неограниченн\w+)\b",
        (
            r"\b(?:ты|вы|включи\w*|активируй\w*|теперь|отвечай\w*|перейди\w*|войди\w*|активирован|включен)\b",
            r"\b(?:ты|теперь|отвечай\w*|ограничени\w+|без|фильтр\w*|твои|все|правил\w*|перейди\w*|войди\w*)\b",
        ),
        45,
    ),
    Rule(
        "leak_secret",
        CONTEXT,
        r"\b(?:interne[nr]?|vertrauliche[nr]?|geheime[nr]?|alle) (?:\w+ )?(?:daten|informationen|passworter|schlussel|geheimnisse)\b",
        (
            r"\b(?:gibst|gib|geben|verrat\w*|verratst|nenne|nennst|offenbar\w*)\b",
            r"\b(?:du|preis|mir|weiter|heraus|aus)\b",
        ),
        40,
        unless=_DE_NOT,
    ),
    Rule(
        "exfil_text",
        CONTEXT,
        r"\b(?:donnees|informations|fichiers|identifiants|mots de passe|datos|informacion|archivos|daten|dateien|informationen)\b",
        (
            r"\b(?:envoie\w*|envoyez|transmets|transmettez|envia\w*|manda\w*|sende|schicke|ubermittle|leite)\b",
            r"(?:@|\battacker\b|\bexterne\w*\b|\bexterna?o?\b|https?://)",
        ),
        60,
    ),
    Rule(
        "fake_update",
        CONTEXT,
        r"\b(?:systemhinweis|systemmeldung|systemnachricht|nota del sistema|mensaje del sistema|aviso del sistema|note systeme|message systeme|avis systeme|nota di sistema|системное (?:сообщение|уведомление)|внимание ии|administrador|administrateur)\b[\W_]{0,3}:",
        (
            r"\b(?:muss|mussen|debe\w*|doit|doivent|deve|deben|ignorier\w*|ignora\w*|ignore\w*|игнорируй\w*|должен|должна|ajoute\w*|angehangt|anade\w*|aggiunto|envia\w*|revela\w*|gewahr\w*)\b",
            r"\b(?:antwort\w*|respuesta\w*|reponse\w*|risposta|anweisung\w*|instruc\w+|instruktion\w*|regel\w*|reglas|regles|token|jeton|инструкци\w+|ответ\w*)\b",
        ),
        110,
        across=True,
    ),
    Rule(
        "leak_system_prompt",
        ALL,
        r"\b(?:tue|tuas?|suas?) (?:istruzioni|instrucoes|regole|regras)|prompt di sistema|prompt do sistema|istruzioni di sistema\b",
        (r"\b(?:rivela\w*|mostra\w*|stampa\w*|ripeti\w*|dimmi|revele\w*|mostre\w*|imprima|repita|diga)\b",),
        50,
    ),
    # Italian and Portuguese: the commonest form only
    Rule(
        "prompt_injection",
        ALL,
        r"\b(?:ignora(?:te|re)?|dimentica(?:te|re)?|ignore|ignorem?|esqueca(?:m)?|esquece|desconsidere|trascura|non (?:seguire|considerare))\b",
        (
            r"\b(?:istruzioni|regole|direttive|ordini|comandi|prompt|instrucoes|regras|diretrizes|ordens|comandos)\b",
            r"\b(?:precedent[ei]|sopra|anteriori|anteriores|acima|tutt[eio]|todas?|tue|suas?|previas|iniziali|iniciais)\b",
        ),
        60,
    ),
    # All four: secrets read and handed over
    Rule(
        "read_secrets",
        CONTEXT,
        _FILES,
        (
            r"\b(?:lee|leer|lea|abre|muestra|lis|lisez|lire|ouvre|ouvrez|affiche\w*|lies|lesen|offne\w*|zeig\w*|прочитай\w*|открой\w*|прочти\w*|считай)\b",
            r"\b(?:envia\w*|manda\w*|muestra\w*|incluye|imprime|envoi\w*|envoy\w*|montre\w*|affiche\w*|inclus|send\w*|schick\w*|gib|zeig\w*|fuge|отправ\w+|покажи\w*|выведи\w*|включи\w*|перешли\w*|dime|donne\w*)\b",
        ),
        80,
    ),
)
