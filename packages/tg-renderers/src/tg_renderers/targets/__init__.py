"""What each target has, for the renderers that write code for it."""
