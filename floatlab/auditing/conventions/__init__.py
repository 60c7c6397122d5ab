"""How libraries store quantised weights: the names of the parts, and how codes and scales give numbers."""
