"""Fixed fictional demo data: names, addresses, merchants and sizes."""

from random import Random
from typing import Final, NamedTuple

FIRST_NAMES: Final = """
    Aminata Fatmata Mariama Isatu Kadiatu Hawa Adama Memunatu Zainab Ramatu Finda Sia Kumba Yabom
    Marie Salamatu Mabinty Bintu Haja Nenneh Mohamed Ibrahim Abu Alhaji Sorie Abdul Foday Lansana
    Momoh Sheku Tamba Sahr Komba Alpha Osman Brima Musa Saidu James Joseph Emmanuel Francis Samuel
    Ishmael Hassan Amara""".split()
LAST_NAMES: Final = """
    Kamara Sesay Bangura Koroma Conteh Turay Kargbo Mansaray Jalloh Bah Barrie Fofanah Kanu
    Kallon Lansana Vandi Koker Momoh Bockarie Sheriff Massaquoi Lebbie Gbla Dumbuya Thoronka
    Samura Marah Tarawallie Sankoh Johnson Cole Williams Macauley Davies Wright""".split()
STREETS: Final = (
    "Siaka Stevens Street",
    "Wilkinson Road",
    "Kissy Road",
    "Circular Road",
    "Fourah Bay Road",
    "Dambala Road",
    "Hangha Road",
    "Rogbaneh Road",
    "Lumley Beach Road",
    "Regent Road",
)
TOWNS: Final = ("Freetown", "Bo", "Kenema", "Makeni", "Koidu", "Port Loko", "Waterloo", "Lunsar")


class Merchant(NamedTuple):
    name: str
    #: Purchase price range, in major units.
    min_price: int
    max_price: int
    #: Whether the merchant also accepts in-app payments.
    in_app: bool = False


MERCHANTS: Final = (
    Merchant("Freetown Fresh Market", 15, 300),
    Merchant("Crown Bakery", 5, 60),
    Merchant("Bo Family Pharmacy", 20, 350),
    Merchant("Eastern Bus Lines", 20, 150, in_app=True),
    Merchant("Kenema Fuel Station", 60, 900),
    Merchant("Salone Fashion House", 80, 900, in_app=True),
    Merchant("Lumley Supermarket", 30, 700),
    Merchant("Makeni Hardware", 50, 2500),
    Merchant("Sea Breeze Restaurant", 70, 500),
    Merchant("Koidu Electronics", 200, 4000),
    Merchant("Sunrise School Shop", 20, 400),
    Merchant("Peninsula Water Company", 40, 300, in_app=True),
)

PARTNER_NAME: Final = "Salone Remittance"

MEMOS: Final = (
    "school fees",
    "groceries",
    "rent",
    "thank you",
    "transport",
    "for my mother",
    "wedding",
    "medicine",
    "phone credit",
    "birthday",
    "furniture",
    "loan repayment",
)


class Size(NamedTuple):
    subscribers: int
    merchants: int
    agents: int
    days: int
    #: Average number of transactions per subscriber and day.
    transactions_per_day: float
    #: Intervals per day; an interval's random transactions run concurrently.
    slots_per_day: int


SIZES: Final[dict[str, Size]] = {
    "small": Size(
        subscribers=40, merchants=6, agents=5, days=60, transactions_per_day=0.3, slots_per_day=5
    ),
    "medium": Size(
        subscribers=1_000,
        merchants=12,
        agents=20,
        days=90,
        transactions_per_day=0.4,
        slots_per_day=24,
    ),
    "large": Size(
        subscribers=10_000,
        merchants=48,
        agents=120,
        days=120,
        transactions_per_day=0.25,
        slots_per_day=60,
    ),
}


class Person(NamedTuple):
    first_name: str
    last_name: str
    address: str

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}"


def draw_person(rng: Random) -> Person:
    return Person(rng.choice(FIRST_NAMES), rng.choice(LAST_NAMES), draw_address(rng))


def draw_address(rng: Random) -> str:
    return f"{rng.randint(1, 180)} {rng.choice(STREETS)}, {rng.choice(TOWNS)}"


def get_merchant(number: int) -> Merchant:
    """Return merchant data by number; numbers beyond the list become numbered branches."""
    branch, index = divmod(number, len(MERCHANTS))
    original = MERCHANTS[index]
    return original._replace(name=f"{original.name} {branch + 1}") if branch else original
