"""sifr in other programs: a module each, which imports that program when it is imported itself."""
