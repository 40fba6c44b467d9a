"""What single chapters of the part *alignment* need, a module or a package each."""
