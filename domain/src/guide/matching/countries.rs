//! Countries as names, ids and groups of channels state them: codes, and names in English and in the country's language.

use std::fmt;

/// A country, by its code of two lower-case letters from ISO 3166; the United Kingdom is `uk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Country([u8; 2]);

impl Country {
    /// Returns the country of a code of two or three letters or of a name, regardless of case.
    pub fn from_text(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        Self::from_code(&text).or_else(|| Self::from_name(&text))
    }

    /// Returns the country of a lower-case code.
    pub(crate) fn from_code(code: &str) -> Option<Self> {
        let row = COUNTRIES.iter().find(|it| it.code == code || it.others.contains(&code))?;
        row.country()
    }

    /// Returns the country of a lower-case name without accents.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        COUNTRIES.iter().find(|it| it.names.contains(&name))?.country()
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

struct Row {
    code: &'static str,
    /// Further codes.
    others: &'static [&'static str],
    names: &'static [&'static str],
}

impl Row {
    fn country(&self) -> Option<Country> {
        self.code.as_bytes().try_into().ok().map(Country)
    }
}

const fn row(code: &'static str, others: &'static [&'static str], names: &'static [&'static str]) -> Row {
    Row { code, others, names }
}

/// Countries whose channels occur in playlists. `ar` is missing, because it also stands for Arabic.
const COUNTRIES: &[Row] = &[
    row("ae", &["uae"], &["emirates"]),
    row("al", &["alb"], &["albania", "shqiperia"]),
    row("am", &["arm"], &["armenia"]),
    row("at", &["aut"], &["austria", "osterreich", "oesterreich"]),
    row("au", &["aus"], &["australia"]),
    row("az", &["aze"], &["azerbaijan"]),
    row("ba", &["bih"], &["bosnia"]),
    row("bd", &["bgd"], &["bangladesh"]),
    row("be", &["bel"], &["belgium", "belgie", "belgique"]),
    row("bg", &["bgr", "bul"], &["bulgaria"]),
    row("br", &["bra"], &["brazil", "brasil"]),
    row("by", &["blr"], &["belarus"]),
    row("ca", &["can"], &["canada"]),
    row("ch", &["che", "sui"], &["switzerland", "schweiz", "suisse", "svizzera"]),
    row("cl", &["chl"], &["chile"]),
    row("cn", &["chn"], &["china"]),
    row("co", &["col"], &["colombia"]),
    row("cy", &["cyp"], &["cyprus"]),
    row("cz", &["cze"], &["czechia", "cesko"]),
    row("de", &["deu", "ger"], &["germany", "deutschland"]),
    row("dk", &["dnk", "den"], &["denmark", "danmark"]),
    row("dz", &["dza", "alg"], &["algeria"]),
    row("ec", &["ecu"], &["ecuador"]),
    row("ee", &["est"], &["estonia", "eesti"]),
    row("eg", &["egy"], &["egypt"]),
    row("es", &["esp"], &["spain", "espana"]),
    row("fi", &["fin"], &["finland", "suomi"]),
    row("fr", &["fra"], &["france"]),
    row("ge", &["geo"], &["georgia"]),
    row("gr", &["grc", "gre"], &["greece", "hellas"]),
    row("hk", &["hkg"], &["hongkong"]),
    row("hr", &["hrv", "cro"], &["croatia", "hrvatska"]),
    row("hu", &["hun"], &["hungary", "magyarorszag"]),
    row("id", &["idn"], &["indonesia"]),
    row("ie", &["irl"], &["ireland"]),
    row("il", &["isr"], &["israel"]),
    row("in", &["ind"], &["india"]),
    row("iq", &["irq"], &["iraq"]),
    row("ir", &["irn"], &["iran"]),
    row("is", &["isl"], &["iceland"]),
    row("it", &["ita"], &["italy", "italia"]),
    row("jp", &["jpn"], &["japan"]),
    row("ke", &["ken"], &["kenya"]),
    row("kr", &["kor"], &["korea"]),
    row("kz", &["kaz"], &["kazakhstan"]),
    row("lk", &["lka"], &["srilanka"]),
    row("lt", &["ltu"], &["lithuania", "lietuva"]),
    row("lu", &["lux"], &["luxembourg", "luxemburg"]),
    row("lv", &["lva"], &["latvia", "latvija"]),
    row("ma", &["mar"], &["morocco", "maroc"]),
    row("md", &["mda"], &["moldova"]),
    row("me", &["mne"], &["montenegro", "crnagora"]),
    row("mk", &["mkd"], &["macedonia", "makedonija"]),
    row("mt", &["mlt"], &["malta"]),
    row("mx", &["mex"], &["mexico"]),
    row("my", &["mys"], &["malaysia"]),
    row("ng", &["nga"], &["nigeria"]),
    row("nl", &["nld", "ned"], &["netherlands", "nederland", "holland"]),
    row("no", &["nor"], &["norway", "norge"]),
    row("np", &["npl"], &["nepal"]),
    row("nz", &["nzl"], &["newzealand"]),
    row("pe", &["per"], &["peru"]),
    row("ph", &["phl"], &["philippines"]),
    row("pk", &["pak"], &["pakistan"]),
    row("pl", &["pol"], &["poland", "polska"]),
    row("pt", &["prt", "por"], &["portugal"]),
    row("qa", &["qat"], &["qatar"]),
    row("ro", &["rou", "rom"], &["romania"]),
    row("rs", &["srb"], &["serbia", "srbija"]),
    row("ru", &["rus"], &["russia", "rossiya"]),
    row("sa", &["ksa", "sau"], &["saudiarabia"]),
    row("se", &["swe"], &["sweden", "sverige"]),
    row("sg", &["sgp"], &["singapore"]),
    row("si", &["svn", "slo"], &["slovenia", "slovenija"]),
    row("sk", &["svk"], &["slovakia", "slovensko"]),
    row("th", &["tha"], &["thailand"]),
    row("tn", &["tun"], &["tunisia"]),
    row("tr", &["tur"], &["turkey", "turkiye"]),
    row("tw", &["twn"], &["taiwan"]),
    row("ua", &["ukr"], &["ukraine", "ukraina"]),
    row("uk", &["gb", "gbr"], &["unitedkingdom"]),
    row("us", &["usa"], &["unitedstates"]),
    row("uy", &["ury"], &["uruguay"]),
    row("ve", &["ven"], &["venezuela"]),
    row("vn", &["vnm"], &["vietnam"]),
    row("xk", &["xkx"], &["kosovo", "kosova"]),
    row("za", &["zaf", "rsa"], &["southafrica"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_is_found_by_its_codes_and_names_and_each_belongs_to_one() {
        for (text, code) in [("UK", "uk"), ("gb", "uk"), ("USA", "us"), ("Deutschland", "de"), (" it ", "it")]
        {
            assert_eq!(Country::from_text(text).unwrap().to_string(), code, "{text}");
        }
        assert_eq!(
            (Country::from_text("ar"), Country::from_text(""), Country::from_text("news")),
            (None, None, None)
        );
        let mut texts: Vec<&str> =
            COUNTRIES.iter().flat_map(|it| [&[it.code], it.others, it.names].concat()).collect();
        let n = texts.len();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), n);
        assert!(COUNTRIES.iter().all(|it| it.country().is_some()));
    }
}
