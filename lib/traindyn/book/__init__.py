"""From chapter sources to a static site, one step per module.

=============  =======================================================================
`pages`        which files of ``book/`` are chapters, which are plain pages
`depends`      what an executed chapter depends on, as a stamp file whose content
               changes exactly when the chapter has to run again
`execute`      run one chapter as a notebook
`performance`  the page of measured speed and memory
`stage`        assemble pages, executed notebooks and ledger; build and check the site
`links`        every link of a built site resolves
`serve`        show a built site on localhost
=============  =======================================================================

The ``Makefile`` calls them as ``python -m traindyn.book.<module>``. Importing this
package, `pages` or `depends` needs nothing outside the standard library.
"""
