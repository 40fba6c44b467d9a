"""From executed chapters and the ledger to a static site.

=======  ============================================================================
`stage`  assemble pages, executed notebooks and ledger; build and check the site
`links`  every link of a built site resolves
`serve`  show a built site on localhost
=======  ============================================================================
"""
