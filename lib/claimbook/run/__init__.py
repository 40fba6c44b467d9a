"""Running chapters, one step per module.

==========  =========================================================================
`chapters`  which files of ``book/`` are chapters, which are plain pages
`stamps`    what an executed chapter depends on, as a stamp file whose content changes
            exactly when the chapter has to run again
`lock`      one build at a time in a folder
`caches`    removes files of compiled code that were cut short
`execute`   run one chapter as a notebook
`lab`       chapters as JupyterLab shows them
==========  =========================================================================

The ``Makefile`` calls them as ``python -m claimbook.run.<module>``.
"""

# Before nbformat, which imports jsonschema too.
from claimbook import _schemas  # noqa: F401
