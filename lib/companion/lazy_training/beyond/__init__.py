"""Mathematics of the chapter beyond."""
