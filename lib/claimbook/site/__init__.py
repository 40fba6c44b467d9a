"""From executed chapters and the ledger to a static site.

========  ============================================================================
`stage`   assemble pages, executed notebooks and ledger; build and check the site
`reuse`   a figure of a chapter on another page
`meta`    descriptions, preview cards and the page 404 of a site
`links`   every link of a built site resolves
`policy`  which scripts the pages of a site may run
`serve`   show a built site on localhost
========  ============================================================================
"""

# Before nbformat, which imports jsonschema too.
from claimbook import _schemas  # noqa: F401
