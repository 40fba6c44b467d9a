"""Mathematics of the chapter training-dynamics."""
