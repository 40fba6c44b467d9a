"""The mathematics that single chapters need: ``companion.<part>.<chapter>``.

Printed formulas, designs of experiments, escape times, thresholds. Only the chapter itself, the
tests and the benchmarks import them; what two chapters use is in :mod:`traindyn`.
"""
