"""The notebook front end: magics, cell runner, widgets. The only layer that knows IPython."""
