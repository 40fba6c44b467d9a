"""Mathematics of the chapter tangent-kernel."""
