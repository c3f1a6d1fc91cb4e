"""The words that the CRM's data is made of."""

from typing import Final

FAMILIAR_COMPANIES: Final = {
    "Acme Motors": 31,
    "Corp of Acme": 14,
    "TechCo": 92,
    "Globex": 81,
    "Initech": 64,
    "Umbra Logistics": 43,
    "Hooloo": 38,
    "Vandelay Imports": 29,
    "Wernham Paper": 22,
}
"""Companies with a fixed number of deals."""

COMPANY_FIRST: Final = (
    "Alder", "Amber", "Arctic", "Aspen", "Beacon", "Birch", "Blue", "Bright", "Cedar", "Cinder", "Cobalt", "Copper",
    "Coral", "Crest", "Delta", "Drift", "East", "Ember", "Falcon", "Fern", "Flint", "Garnet", "Granite", "Harbor",
    "Hazel", "Indigo", "Iron", "Juniper", "Lark", "Linden", "Maple", "Meridian", "Nimbus", "North", "Oak", "Onyx",
    "Orchid", "Pine", "Quartz", "Raven", "River", "Sable", "Silver", "Summit", "Tidal", "Umber", "Vale", "Willow",
)  # fmt: skip
COMPANY_SECOND: Final = (
    "Analytics", "Biotech", "Capital", "Clinics", "Dynamics", "Energy", "Foods", "Freight", "Instruments", "Labs",
    "Media", "Mills", "Networks", "Optics", "Partners", "Robotics", "Software", "Systems", "Textiles", "Works",
)  # fmt: skip
INDUSTRIES: Final = (
    "Education", "Energy", "Finance", "Food", "Health care", "Logistics", "Manufacturing", "Media", "Retail",
    "Software",
)  # fmt: skip
CITIES: Final = (
    "Amsterdam", "Austin", "Berlin", "Bogotá", "Chicago", "Denver", "Dublin", "Lagos", "Lisbon", "London", "Lyon",
    "Madrid", "Mumbai", "Nairobi", "Oslo", "Osaka", "Prague", "São Paulo", "Seoul", "Sydney", "Toronto", "Zürich",
)  # fmt: skip
FIRST_NAMES: Final = (
    "Aisha", "Alan", "Beatriz", "Boris", "Carmen", "Chen", "Dana", "Diego", "Elif", "Emeka", "Farid", "Freya", "Grace",
    "Hana", "Hugo", "Ines", "Ivan", "Jana", "Kofi", "Lena", "Luca", "Maya", "Mei", "Nadia", "Noah", "Olga", "Omar",
    "Petra", "Priya", "Rafael", "Rosa", "Sam", "Sofia", "Tariq", "Tove", "Uma", "Viktor", "Wanda", "Yuki", "Zoë",
)  # fmt: skip
LAST_NAMES: Final = (
    "Abara", "Almeida", "Andersen", "Bauer", "Bianchi", "Castro", "Chowdhury", "Cohen", "Dubois", "Eriksen", "Farouk",
    "Fischer", "García", "Haddad", "Hansen", "Ito", "Ivanova", "Jansen", "Kaya", "Kim", "Kowalski", "Lindqvist",
    "Lopez", "Marek", "Mensah", "Moreau", "Nakamura", "Novák", "O'Brien", "Okafor", "Patel", "Petrov", "Quinn", "Rossi",
    "Sato", "Schmidt", "Silva", "Tanaka", "Van Dijk", "Wang",
)  # fmt: skip
JOB_TITLES: Final = (
    "Buyer", "Chief financial officer", "Chief technology officer", "Facility manager", "Head of operations",
    "IT manager", "Legal counsel", "Managing director", "Office manager", "Procurement lead", "Product owner",
    "Security officer",
)  # fmt: skip
PRODUCTS: Final = (
    "Analytics suite", "Backup service", "Consulting days", "Data platform", "Field app", "Forecasting", "Help desk",
    "Identity service", "Monitoring", "Payroll module", "Reporting add-on", "Support plan", "Training",
    "Warehouse module",
)  # fmt: skip
OCCASIONS: Final = ("expansion", "migration", "new business", "pilot", "renewal", "upgrade")

DECOY_DEALS: Final = (
    "Acme Corp renewal", "Acme Corp migration (resale)", "Joint offer with Acme Corp",
    "Acme Corp expansion, subcontract",
    "Like Acme Corp: data platform", "Acme Corp pilot", "Won back from Acme Corp", "ACME CORP upgrade",
    "Acme Corp training, via partner", "Acme Corp", "Replace Acme Corp help desk", "Acme Corp new business",
)  # fmt: skip
"""Names of deals that speak of Acme Corp but belong to other companies."""

PIPELINES: Final = {
    "Sales": (
        ("New lead", False),
        ("Qualified", False),
        ("Demo held", False),
        ("Proposal sent", False),
        ("Negotiation", False),
        ("Closed won", True),
        ("Closed lost", True),
    ),
    "Renewals": (
        ("Upcoming", False),
        ("Qualified", False),
        ("Offer sent", False),
        ("Closed won", True),
        ("Closed lost", True),
    ),
}
"""The stages of each pipeline in order, with whether a deal in it is closed."""
