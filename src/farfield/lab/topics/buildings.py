"""Buildings: bridges, mills, lighthouses and their like."""

from __future__ import annotations

from farfield.lab.grammar import Aspect, Kind, Topic, number, pick, year

TOPIC = Topic(
    name="buildings",
    stems=("place",),
    sounds="north",
    kinds=(
        Kind(("bridge", "crossing", "span"), "the {stem} Bridge"),
        Kind(("lighthouse", "beacon", "signal tower"), "the {stem} Lighthouse"),
        Kind(("mill", "grinding house", "millworks"), "the {stem} Mill"),
        Kind(("hall", "manor", "great house"), "{stem} Hall"),
        Kind(("chapel", "church", "house of prayer"), "{stem} Chapel"),
        Kind(("theatre", "playhouse", "stage house"), "the {stem} Theatre"),
    ),
    mentions=(
        ("{stem} {k0}", "the {stem} {k0}"),
        ("the {k1} at {stem}", "the {k1} in {stem}"),
        ("the {stem} {k2}", "the old {k2} of {stem}"),
    ),
    facts={
        "built": year(1640, 1910),
        "builder": "person",
        "height": number(11, 94),
        "material": pick(
            "pale granite",
            "red sandstone",
            "black slate",
            "yellow brick",
            "white limestone",
            "dressed flint",
            "tarred oak",
            "blue basalt",
        ),
        "position": pick(
            "on the north bank just below the old ferry",
            "at the top of the lane behind the market",
            "on the headland east of the harbour",
            "beside the drovers' road south of the town",
            "in the meadow opposite the tannery",
            "at the fork of the two valleys",
            "on the quay next to the customs house",
            "half a mile upstream of the weir",
        ),
        "trouble": pick(
            "the foundations had begun to sink",
            "the tolls no longer paid for repairs",
            "a winter flood had carried away the lower steps",
            "lightning had split the roof beams",
            "the parish could not pay a keeper",
            "the timbers were riddled with worm",
            "smoke from the brickworks had eaten into the walls",
        ),
    },
    intros=(
        (
            "{name} is a listed {k0} and a landmark of the district.",
            "{name} is among the best preserved monuments of its region.",
        ),
        (
            "This folder concerns the {k1} at {stem}, known in the deeds as {name}.",
            "Papers touching {name} were kept by the parish of {elsewhere}.",
        ),
        (
            "We drove out to see {name} last {season} and it was worth the trip.",
            "I grew up within sight of {name}, so here is what I know about it.",
        ),
    ),
    colour=(
        (
            "Guided tours leave from the gate every Sunday in {season}.",
            "An engraving of it hangs in the museum of {elsewhere}.",
            "It was restored once, with stone brought from {elsewhere}.",
        ),
        (
            "The corners of the page are torn and the seal is missing.",
            "A sketch of the facade, unsigned, is pinned to the back.",
            "The bill for scaffolding was sent to {elsewhere} and never returned.",
        ),
        (
            "Bring good shoes, because the steps are slippery after rain.",
            "There is a decent bakery around the corner if you get hungry.",
            "The pigeons on the roof are a nuisance, but the view makes up for it.",
        ),
    ),
    aspects=(
        Aspect(
            name="completion",
            section="construction",
            says=(
                (
                    "It was completed in {built} after {few} years of work.",
                    "The date of completion is given as {built} in every survey.",
                ),
                (
                    "The ledger for {built} records the last payment to the masons.",
                    "A notice of {built} declares the work ended and fit for the public.",
                ),
                (
                    "They finished building it in {built}, if the plaque can be trusted.",
                    "My grandmother's diary says it opened in {built} with a brass band.",
                ),
            ),
            asks=(
                (
                    "when (was) {m} completed",
                    "in what year (was) {m} completed",
                    "what (is) the completion date of {m}",
                ),
                (
                    "when did they finish building {m} | when they finished building {m}",
                    "how long ago did the masons finish {m} | how long ago the masons finished {m}",
                ),
                (
                    "how old (is) {m}",
                    "when did {m} open to the public | when {m} opened to the public",
                    "since when (is) {m} open",
                ),
            ),
            nouns=(
                ("completion date", "year of completion"),
                ("end of construction", "finishing year"),
                ("age", "opening date"),
            ),
        ),
        Aspect(
            name="architect",
            section="architect",
            pronoun="who",
            says=(
                (
                    "Its architect was {builder}, who later worked in {elsewhere}.",
                    "The design is by {builder}, at that time a surveyor in {elsewhere}.",
                ),
                (
                    "The plans bear the signature of {builder}, master builder.",
                    "Letters in the same box name {builder} as author of the drawings.",
                ),
                (
                    "The person behind it all was {builder}, who rarely gets the credit.",
                    "Our guide swore that {builder} dreamed it up on the back of an envelope.",
                ),
            ),
            asks=(
                (
                    "who designed {m}",
                    "who (was) the architect of {m}",
                    "which building did {builder} design | which building {builder} designed",
                ),
                (
                    "who drew up the plans for {m}",
                    "who signed the drawings of {m}",
                    "what did {builder} draw the plans for | what {builder} drew the plans for",
                ),
                (
                    "who deserves the credit for {m}",
                    "which person dreamed up {m}",
                    "which landmark do we owe to {builder} | which landmark we owe to {builder}",
                ),
            ),
            nouns=(
                ("architect", "designer"),
                ("master builder", "author of the plans"),
                ("creator", "mastermind"),
            ),
        ),
        Aspect(
            name="height",
            section="dimensions",
            says=(
                (
                    "Its height from footing to parapet is {height} metres.",
                    "At {height} metres it is the tallest {k0} for many miles.",
                ),
                (
                    "The surveyor measured {height} metres from the ground to the top course.",
                    "An inspection found that it rises {height} metres above the road.",
                ),
                (
                    "Someone worked out that it is {height} metres high, and it feels like more.",
                    "It goes up {height} metres and my knees knew about every one of them.",
                ),
            ),
            asks=(
                (
                    "how tall (is) {m}",
                    "what (is) the height of {m}",
                    "how many metres tall (is) {m}",
                ),
                (
                    "how high does {m} rise | how high {m} rises",
                    "how far above the road does {m} rise | how far above the road {m} rises",
                ),
                (
                    "how big (is) {m} from top to bottom",
                    "what does {m} measure upwards | what {m} measures upwards",
                ),
            ),
            nouns=(
                ("height", "height in metres"),
                ("rise above the road", "elevation"),
                ("vertical size", "measurements"),
            ),
        ),
        Aspect(
            name="material",
            section="materials",
            says=(
                (
                    "The walls are made of {material} on a footing of rubble.",
                    "It is built of {material}, the usual material of the area.",
                ),
                (
                    "Carters were paid for {few} loads of {material} from the quarry.",
                    "The contract demands {material} throughout and forbids plaster.",
                ),
                (
                    "Up close you can see that it is all {material}, even the chimney.",
                    "The whole thing is {material}, which glows when the sun is low.",
                ),
            ),
            asks=(
                (
                    "what (is) {m} made of",
                    "what material (is) {m} built of",
                    "which building material has {m} | which building material {m} has",
                ),
                (
                    "what did the carters bring from the quarry for {m} | "
                    "what the carters brought from the quarry for {m}",
                    "which stone or timber went into {m}",
                ),
                (
                    "what do you see in the walls of {m} up close | "
                    "what you see in the walls of {m} up close",
                    "what kind of surface does {m} have | what kind of surface {m} has",
                ),
            ),
            nouns=(
                ("material", "building material"),
                ("stone or timber", "loads from the quarry"),
                ("surface", "type of masonry"),
            ),
        ),
        Aspect(
            name="position",
            section="location",
            says=(
                (
                    "It is located {position}.",
                    "The site lies {position}, as on the oldest maps.",
                ),
                (
                    "The plot is described as lying {position}.",
                    "According to the deed the ground lies {position}, free of rent.",
                ),
                (
                    "To get there, look for it {position}.",
                    "You will find it {position}, and parking is free.",
                ),
            ),
            asks=(
                (
                    "where (is) {m} located",
                    "what (is) the location of {m}",
                    "on which site (is) {m} located",
                ),
                (
                    "where does the plot of {m} lie | where the plot of {m} lies",
                    "where on the map (is) the ground of {m}",
                ),
                (
                    "where do I go to see {m} | where to go to see {m}",
                    "how do you get to {m} | how you get to {m}",
                ),
            ),
            nouns=(
                ("location", "site"),
                ("plot of land", "place on the map"),
                ("directions", "parking and way there"),
            ),
        ),
        Aspect(
            name="closure",
            section="closure",
            says=(
                (
                    "It was closed for a generation because {trouble}.",
                    "The reason for its closure was that {trouble}.",
                ),
                (
                    "The council ordered the doors shut, seeing that {trouble}.",
                    "A petition explains that {trouble}, and begs that nobody be let in.",
                ),
                (
                    "People stopped using it when {trouble}, which still makes me sad.",
                    "It stood empty for ages since {trouble}, or so the neighbours say.",
                ),
            ),
            asks=(
                (
                    "why (was) {m} closed",
                    "what (was) the reason for the closure of {m}",
                    "why did {m} close | why {m} closed",
                ),
                (
                    "why did the council shut {m} | why the council shut {m}",
                    "what made them bar the doors of {m}",
                ),
                (
                    "why did people stop using {m} | why people stopped using {m}",
                    "how come {m} stood empty",
                ),
            ),
            nouns=(
                ("closure", "reason for closure"),
                ("order to shut", "barred doors"),
                ("empty years", "time of neglect"),
            ),
        ),
    ),
    sources=(0.45, 0.35, 0.2),
    season=(2.0, 3.0),
)
