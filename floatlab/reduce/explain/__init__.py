"""Why two results differ, and which computations give an observed one."""
