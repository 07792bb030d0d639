"""What developers of the workspace run; no part of any package."""
