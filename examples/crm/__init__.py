"""A small CRM: deals, companies, contacts, owners and pipelines behind an HTTP API with its own OpenAPI document.

It is a foreign system. It knows nothing of Toolcrib, shares no code with it and keeps its own records (an audit of
every effective change, a log of every request), so that what a client claims to have done can be judged from this
side.

`python examples/crm/server.py --db PATH` runs it; `examples.crm.app.create_app` gives the application to tests;
`examples.crm.verify.verify_stage_change` judges a database afterwards.
"""
