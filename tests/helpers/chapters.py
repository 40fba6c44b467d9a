"""The smallest chapter, to which tests of runs add the cells that they need."""

#: Its front matter and the cell of its parameters.
HEAD = """\
---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

```{code-cell} ipython3
:tags: [parameters]

profile = "quick"
seed = 1
```
"""
