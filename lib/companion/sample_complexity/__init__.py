"""What single chapters of the part *sample complexity* need, a module or a package each."""
