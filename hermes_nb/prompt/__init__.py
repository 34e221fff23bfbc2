"""What the model is told: the frozen prefix and the per-turn recall block."""
