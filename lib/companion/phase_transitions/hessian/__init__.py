"""Mathematics of the chapter hessian."""
