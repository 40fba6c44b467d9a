"""What single chapters of the part *lazy training* need, a module or a package each."""
