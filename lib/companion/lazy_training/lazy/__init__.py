"""Mathematics of the chapter lazy."""
