"""What single chapters of the part *catapults* need, a module or a package each."""
