"""A small web of its own to do research on: pages, PDF files and a search engine, on the loopback address.

Its companies are invented. Some of its pages are out of date, contradict each other, belong to somebody of a similar
name, or try to give orders to whoever reads them. What is true stands in `facts`; `verify` judges an answer by that
and by the web's own log of requests.

`web.running_web` serves it, `python -m examples.research` by hand; `demo.demonstrate` runs a task on it.
"""
