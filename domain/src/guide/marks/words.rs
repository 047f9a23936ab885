//! The words of marks, as public guides write them, by language.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The meaning of a mark that is a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Word {
    New,
    Live,
    Repeat,
    Premiere,
    Uhd,
    Hd,
    Sd,
    /// Says something that no field has, such as subtitles; a mark only beside another one or in square brackets.
    Other,
}

/// The words in brackets or in superscript letters, in lower case. The first column is the language.
pub(super) const WORDS: &[(&str, Word, &[&str])] = &[
    ("", Word::New, &["n", "🆕", "🈟"]),
    ("", Word::Live, &["l", "🈢", "🔴"]),
    ("", Word::Repeat, &["r", "🈞"]),
    ("", Word::Uhd, &["uhd", "uhdtv", "4k", "8k", "ultra hd", "2160p"]),
    ("", Word::Hd, &["hd", "hdtv", "fhd", "full hd", "1080p", "1080i", "720p"]),
    ("", Word::Sd, &["sd", "sdtv"]),
    (
        "",
        Word::Other,
        &["s", "ad", "sl", "cc", "st", "stereo", "hdr", "dolby", "dd", "5.1", "subtitles", "🈑"],
    ),
    (
        "en",
        Word::New,
        &[
            "new",
            "all new",
            "all-new",
            "brand new",
            "new series",
            "new season",
            "new episode",
            "new episodes",
        ],
    ),
    ("en", Word::Live, &["live", "live now"]),
    ("en", Word::Repeat, &["repeat", "rpt", "rerun", "re-run", "repeats", "encore"]),
    ("en", Word::Premiere, &["premiere", "season premiere", "series premiere", "premier"]),
    (
        "de",
        Word::New,
        &["neu", "neue folge", "neue folgen", "neue staffel", "neue episode", "erstausstrahlung", "ea"],
    ),
    ("de", Word::Live, &["direkt", "livesendung", "live-übertragung", "liveübertragung"]),
    ("de", Word::Repeat, &["wh", "wdh", "whg", "wdhlg", "wiederholung"]),
    ("de", Word::Premiere, &["tv-premiere", "free-tv-premiere", "deutschlandpremiere", "premiere"]),
    (
        "fr",
        Word::New,
        &[
            "nouveau",
            "nouveauté",
            "nouvelle",
            "inédit",
            "inédite",
            "inédits",
            "nouvel épisode",
            "nouvelle saison",
            "nouveaux épisodes",
        ],
    ),
    ("fr", Word::Live, &["direct", "en direct"]),
    ("fr", Word::Repeat, &["rediffusion", "rediff", "redif"]),
    ("fr", Word::Premiere, &["première", "première diffusion"]),
    (
        "es",
        Word::New,
        &[
            "nuevo",
            "nueva",
            "inédito",
            "nuevo episodio",
            "nuevos episodios",
            "nueva temporada",
            "nuevo capítulo",
        ],
    ),
    ("es", Word::Live, &["en directo", "en vivo", "directo", "vivo"]),
    ("es", Word::Repeat, &["repetición", "reposición", "redifusión", "rep"]),
    ("es", Word::Premiere, &["estreno"]),
    ("it", Word::New, &["nuovo", "nuova", "inedito", "nuovi episodi", "nuovo episodio", "nuova stagione"]),
    ("it", Word::Live, &["diretta", "in diretta"]),
    ("it", Word::Repeat, &["replica"]),
    (
        "it",
        Word::Premiere,
        &["1ª tv", "1a tv", "1^ tv", "1tv", "prima tv", "prima visione", "prima visione tv"],
    ),
    ("nl", Word::New, &["nieuw", "nieuwe", "nieuwe aflevering", "nieuw seizoen", "nieuwe serie"]),
    ("nl", Word::Live, &["rechtstreeks"]),
    ("nl", Word::Repeat, &["herhaling", "herh"]),
    ("nl", Word::Premiere, &["première"]),
    (
        "pl",
        Word::New,
        &[
            "nowy",
            "nowa",
            "nowe",
            "nowość",
            "nowy odcinek",
            "nowe odcinki",
            "nowy sezon",
            "premierowy odcinek",
        ],
    ),
    ("pl", Word::Live, &["na żywo", "transmisja na żywo"]),
    ("pl", Word::Repeat, &["powtórka", "powt", "powtórzenie"]),
    ("pl", Word::Premiere, &["premiera"]),
    ("pt", Word::New, &["novo", "nova", "novo episódio", "novos episódios", "nova temporada"]),
    ("pt", Word::Live, &["ao vivo", "em direto", "em directo", "direto"]),
    ("pt", Word::Repeat, &["repetição", "reprise"]),
    ("pt", Word::Premiere, &["estreia", "estréia"]),
    ("sv", Word::New, &["ny", "nytt", "ny säsong", "nytt avsnitt", "nya avsnitt"]),
    ("sv", Word::Live, &["direktsänt", "direktsändning", "sänds live"]),
    ("sv", Word::Repeat, &["repris"]),
    ("sv", Word::Premiere, &["premiär", "säsongspremiär"]),
    ("da", Word::New, &["nyt", "ny sæson", "nyt afsnit", "nye afsnit"]),
    ("da", Word::Live, &["direkte"]),
    ("da", Word::Repeat, &["genudsendelse", "gensendelse", "genuds"]),
    ("no", Word::New, &["ny sesong", "ny episode", "nye episoder"]),
    ("no", Word::Repeat, &["reprise", "sendes i reprise"]),
    ("fi", Word::New, &["uusi", "uusi kausi", "uusi jakso", "uudet jaksot"]),
    ("fi", Word::Live, &["suora", "suora lähetys", "suorana"]),
    ("fi", Word::Repeat, &["uusinta", "u"]),
    ("fi", Word::Premiere, &["ensi-ilta"]),
    ("cs", Word::New, &["nový", "nová", "nové", "novinka", "nový díl", "nové díly", "nová řada"]),
    ("cs", Word::Live, &["živě", "přímý přenos", "v přímém přenosu"]),
    ("cs", Word::Repeat, &["repríza", "opakování"]),
    ("cs", Word::Premiere, &["premiéra"]),
    ("hu", Word::New, &["új", "új rész", "új évad", "új epizód"]),
    ("hu", Word::Live, &["élő", "élőben", "élő közvetítés"]),
    ("hu", Word::Repeat, &["ism", "ismétlés"]),
    ("ro", Word::New, &["nou", "episod nou", "sezon nou"]),
    ("ro", Word::Live, &["în direct", "in direct"]),
    ("ro", Word::Repeat, &["reluare"]),
    ("tr", Word::New, &["yeni", "yeni bölüm", "yeni sezon"]),
    ("tr", Word::Live, &["canlı", "canlı yayın"]),
    ("tr", Word::Repeat, &["tekrar"]),
    (
        "ru",
        Word::New,
        &["новый", "новая", "новое", "новинка", "новая серия", "новые серии", "новый сезон", "новый выпуск"],
    ),
    ("ru", Word::Live, &["прямой эфир", "в прямом эфире", "прямая трансляция"]),
    ("ru", Word::Repeat, &["повтор", "повторение"]),
    ("ru", Word::Premiere, &["премьера"]),
    ("el", Word::New, &["νέο", "νεο", "νέο επεισόδιο", "νέα επεισόδια", "νέος κύκλος"]),
    ("el", Word::Live, &["ζωντανά", "απευθείας", "απευθείας μετάδοση"]),
    ("el", Word::Repeat, &["επανάληψη", "επαναληψη", "ε"]),
    ("ja", Word::New, &["新"]),
    ("ja", Word::Live, &["生", "生放送", "生中継"]),
    ("ja", Word::Repeat, &["再", "再放送"]),
    ("ja", Word::Other, &["字", "二", "解", "デ", "終", "多", "手"]),
    ("zh", Word::New, &["首播", "新剧"]),
    ("zh", Word::Live, &["直播"]),
    ("zh", Word::Repeat, &["重播", "回看"]),
    ("ko", Word::New, &["신규", "새 방송", "본방송"]),
    ("ko", Word::Live, &["생방송"]),
    ("ko", Word::Repeat, &["재방송", "재"]),
    ("ar", Word::New, &["جديد", "حلقة جديدة"]),
    ("ar", Word::Live, &["مباشر"]),
    ("ar", Word::Repeat, &["إعادة", "اعادة"]),
];

/// The words that are marks before a colon, as in `New: Harbour Lights`. Others are also names.
const PREFIXES: &[&str] = &[
    "new",
    "all new",
    "brand new",
    "new series",
    "new season",
    "new episode",
    "live",
    "repeat",
    "neu",
    "neue folge",
    "neue folgen",
    "wiederholung",
    "inédit",
    "nouveau",
    "nouvel épisode",
    "en direct",
    "rediffusion",
    "nuevo",
    "nuevo episodio",
    "en directo",
    "en vivo",
    "nuovo",
    "nuovi episodi",
    "inedito",
    "in diretta",
    "replica",
    "nieuw",
    "nieuwe aflevering",
    "herhaling",
    "nowy",
    "nowość",
    "nowy odcinek",
    "na żywo",
    "powtórka",
    "novo",
    "novo episódio",
    "ao vivo",
    "em direto",
    "inédito",
    "nytt",
    "nytt avsnitt",
    "repris",
    "uusi",
    "živě",
    "yeni",
    "canlı",
    "прямой эфир",
    "повтор",
];

/// Words before the number of a season, in lower case.
pub(crate) const SEASON_WORDS: &[&str] = &[
    "s",
    "se",
    "sn",
    "ser",
    "season",
    "series",
    "staffel",
    "stf",
    "saison",
    "sais",
    "temporada",
    "temp",
    "t",
    "stagione",
    "stag",
    "st",
    "sezon",
    "sez",
    "seria",
    "seizoen",
    "seiz",
    "säsong",
    "säs",
    "sæson",
    "sesong",
    "kausi",
    "sezóna",
    "série",
    "řada",
    "évad",
    "sezonul",
    "сезон",
    "сез",
    "σεζόν",
    "κύκλος",
];

/// Words before the number of an episode, in lower case.
pub(crate) const EPISODE_WORDS: &[&str] = &[
    "e",
    "ep",
    "eps",
    "epi",
    "epis",
    "episode",
    "épisode",
    "episodio",
    "episódio",
    "capítulo",
    "capitulo",
    "cap",
    "folge",
    "flg",
    "fg",
    "aflevering",
    "afl",
    "odcinek",
    "odc",
    "avsnitt",
    "avs",
    "afsnit",
    "afs",
    "jakso",
    "osa",
    "epizod",
    "epizoda",
    "epizóda",
    "epizód",
    "episodul",
    "díl",
    "část",
    "rész",
    "bölüm",
    "bolum",
    "серия",
    "сер",
    "выпуск",
    "вып",
    "эпизод",
    "επεισόδιο",
    "επ",
];

/// Words that name no work: they are marks at the end of a title without brackets too, with a number after them.
pub(super) const BARE_EPISODE_WORDS: &[&str] = &[
    "ep",
    "eps",
    "folge",
    "flg",
    "aflevering",
    "afl",
    "odcinek",
    "odc",
    "avsnitt",
    "avs",
    "afsnit",
    "capítulo",
    "cap",
    "jakso",
    "выпуск",
    "серия",
    "bölüm",
    "bolum",
    "rész",
    "díl",
    "話",
    "集",
    "回",
    "화",
    "회",
];
pub(super) const BARE_SEASON_WORDS: &[&str] = &["staffel", "temporada", "stagione", "seizoen", "сезон"];

/// Words that come after the number of a season or of an episode.
pub(super) const SEASON_WORDS_AFTER: &[&str] = &["sezon", "évad", "řada", "série", "сезон", "季", "staffel"];
pub(super) const EPISODE_WORDS_AFTER: &[&str] = &[
    "bölüm",
    "bolum",
    "rész",
    "díl",
    "část",
    "серия",
    "выпуск",
    "集",
    "話",
    "回",
    "期",
    "화",
    "회",
    "epizód",
];

/// Words between the number of an episode and the number of all, in lower case.
pub(super) const OF_WORDS: &[&str] = &["of", "von", "de", "di", "z", "van", "av", "af", "ze", "из"];

/// Pairs of numbers with a slash that name something else than an episode.
pub(super) const NAMES_WITH_SLASH: &[(u32, u32)] = &[(9, 11), (7, 7), (20, 20), (50, 50), (4, 20), (10, 10)];

static BY_WORD: LazyLock<HashMap<&'static str, Word>> = LazyLock::new(|| {
    let all = WORDS.iter().flat_map(|(_, word, texts)| texts.iter().map(|it| (*it, *word)));
    all.collect()
});

static NUMBER_WORDS: LazyLock<HashMap<&'static str, bool>> = LazyLock::new(|| {
    let seasons = SEASON_WORDS.iter().map(|it| (*it, true));
    seasons.chain(EPISODE_WORDS.iter().map(|it| (*it, false))).collect()
});

/// Returns true for a word in lower case before the number of a season, and false for one of an episode.
pub(super) fn number_word(text: &str) -> Option<bool> {
    NUMBER_WORDS.get(text).copied()
}

/// Returns the meaning of a text in lower case.
pub(super) fn meaning(text: &str) -> Option<Word> {
    BY_WORD.get(text).copied()
}

/// Returns the meaning of a text in lower case that a colon or full stop follows.
pub(super) fn prefix_meaning(text: &str) -> Option<Word> {
    meaning(text).filter(|_| PREFIXES.contains(&text))
}
