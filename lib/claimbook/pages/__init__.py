"""The pages that a ledger becomes, a module each, which computes what its template shows.

=============  ==============================================================
`ledger`       all claims, with a filter
`errata`       what is false or misprinted in the sources
`statements`   from a number in a source to its code and its tests
`map`          which statement rests on which
`resolution`   what the verdicts exclude
`panels`       figures and tables, panel by panel
`limits`       claims that are decided in part, or not at all
`figures`      all figures
`status`       what was built, where, how long it took; runs with other seeds
`performance`  measured speed and memory
`layers`       a drawing of what uses what
`finding`      the index of the claims for the search page
`templates`    what a page is filled into
`parts`        what several pages share
`plain`        texts without TeX
=============  ==============================================================
"""
