//! A programme of a guide, with every field of `xmltv.dtd`
//! (<https://github.com/XMLTV/xmltv/blob/master/xmltv.dtd>).
//!
//! The stored form of a programme is the inside of its element in canonical XMLTV: [`to_xml`] writes it, [`from_xml`]
//! reads it. Output copies it as it is.

mod addresses;
mod brief;
mod episode;
mod id;
mod media_server;
mod names;
mod parts;
mod read;
mod text;
mod write;

use std::borrow::Cow;

pub use self::addresses::{AddressKind, push_replacing_addresses};
pub(crate) use self::brief::brief_from_xml;
pub use self::id::ProgrammeId;
pub use self::media_server::for_media_servers;
pub use self::parts::{
    Credit, CreditRole, EpisodeNumber, ImageKind, LengthUnit, LocalText, PreviouslyShown, ProgrammeAudio,
    ProgrammeIcon, ProgrammeImage, ProgrammeLength, ProgrammeRating, ProgrammeReview, ProgrammeSubtitles,
    ProgrammeUrl, ProgrammeVideo, ReviewKind, SubtitlesKind,
};
pub use self::read::{ProgrammeXmlError, from_xml};
pub(crate) use self::read::{parse_element, programme_from_element};
pub use self::text::{DESCRIPTION_CHARS_MAX, ENTRIES_MAX, TEXT_CHARS_MAX};
pub(crate) use self::text::{address, line};
pub use self::write::to_xml;
pub(crate) use self::write::without_catchup_id;
use super::marks::{self, MarkedText};

/// A programme. Lists with texts in several languages have the preferred one first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Programme {
    /// Seconds since 1970-01-01.
    pub start: i64,
    /// Seconds since 1970-01-01; greater than `start`.
    pub stop: i64,
    /// Start that is signalled to recorders (PDC), in seconds since 1970-01-01.
    pub pdc_start: Option<i64>,
    /// Start that is signalled to recorders (VPS), in seconds since 1970-01-01.
    pub vps_start: Option<i64>,
    pub showview: Option<String>,
    pub videoplus: Option<String>,
    /// Position among several programmes that share start and stop: `0/2` is the first of two.
    pub clump_index: Option<String>,
    /// The name of the programme in the archive of its provider, which can be an address with credentials. The DTD has no
    /// such attribute, and guides for players leave it out.
    pub catchup_id: Option<String>,
    pub titles: Vec<LocalText>,
    pub sub_titles: Vec<LocalText>,
    /// The only texts with line breaks.
    pub descriptions: Vec<LocalText>,
    /// In the order of [`CreditRole`], as in the DTD.
    pub credits: Vec<Credit>,
    /// Date of production: `YYYY`, `YYYYMM` or `YYYYMMDD`.
    pub date: Option<String>,
    pub categories: Vec<LocalText>,
    pub keywords: Vec<LocalText>,
    pub language: Option<LocalText>,
    pub orig_language: Option<LocalText>,
    /// Duration without advertisements.
    pub length: Option<ProgrammeLength>,
    pub icons: Vec<ProgrammeIcon>,
    pub urls: Vec<ProgrammeUrl>,
    pub countries: Vec<LocalText>,
    pub episode_numbers: Vec<EpisodeNumber>,
    pub video: Option<ProgrammeVideo>,
    pub audio: Option<ProgrammeAudio>,
    pub previously_shown: Option<PreviouslyShown>,
    pub premiere: Option<LocalText>,
    pub last_chance: Option<LocalText>,
    /// The first screening of a programme that was never shown before.
    pub is_new: bool,
    /// Broadcast as it happens. The DTD has no element for it: read from `<live/>`, stored as the keyword `live` without
    /// a language.
    pub is_live: bool,
    pub subtitles: Vec<ProgrammeSubtitles>,
    pub ratings: Vec<ProgrammeRating>,
    pub star_ratings: Vec<ProgrammeRating>,
    pub reviews: Vec<ProgrammeReview>,
    pub images: Vec<ProgrammeImage>,
}

impl Programme {
    /// Returns the preferred title; empty if the guide has none.
    pub fn title(&self) -> &str {
        self.titles.first().map_or("", |it| &it.text)
    }

    /// Returns the preferred title without its marks, by which programmes are compared.
    pub fn plain_title(&self) -> Cow<'_, str> {
        marks::plain(self.title(), MarkedText::Title)
    }

    pub fn sub_title(&self) -> Option<&str> {
        first(&self.sub_titles)
    }

    /// Returns the preferred sub-title without its marks.
    pub fn plain_sub_title(&self) -> Option<Cow<'_, str>> {
        self.sub_title().map(|it| marks::plain(it, MarkedText::SubTitle))
    }

    pub fn description(&self) -> Option<&str> {
        first(&self.descriptions)
    }

    /// Returns the preferred description without its marks.
    pub fn plain_description(&self) -> Option<Cow<'_, str>> {
        self.description().map(|it| marks::plain(it, MarkedText::Description))
    }

    /// Returns season and episode, both from 1, from the first episode number that has one of them.
    pub fn season_episode(&self) -> (Option<u32>, Option<u32>) {
        episode::season_episode(&self.episode_numbers)
    }

    pub fn is_new(&self) -> bool {
        self.is_new
    }

    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Returns true for the first screening on this channel, of a season or of a series.
    pub fn is_premiere(&self) -> bool {
        self.premiere.as_ref().is_some_and(|it| !mentions_finale(&it.text))
    }

    /// Returns true if the guide calls this the finale of a season or series. The DTD has no element for it; guides
    /// write it into `last-chance`, `premiere` or a keyword.
    pub fn is_finale(&self) -> bool {
        let notes = [&self.last_chance, &self.premiere].into_iter().flatten();
        notes.chain(&self.keywords).any(|it| mentions_finale(&it.text))
    }

    /// Returns true for a repetition.
    pub fn is_previously_shown(&self) -> bool {
        self.previously_shown.is_some()
    }

    /// Returns the year of production.
    pub fn year(&self) -> Option<u32> {
        self.date.as_deref()?.get(..4)?.parse().ok().filter(|it| (1800..=2999).contains(it))
    }

    /// Returns the address of the preferred icon.
    pub fn icon(&self) -> Option<&str> {
        self.icons.first().map(|it| it.src.as_str())
    }

    /// Returns the address of the poster, if the guide has one.
    pub fn poster(&self) -> Option<&str> {
        self.images.iter().find(|it| it.kind == Some(ImageKind::Poster)).map(|it| it.url.as_str())
    }

    /// Returns the address of the picture that stands for the programme: the poster, otherwise the icon.
    pub fn picture(&self) -> Option<&str> {
        self.poster().or_else(|| self.icon())
    }

    /// Returns the people with a role, in the order of the guide.
    pub fn people(&self, role: CreditRole) -> impl Iterator<Item = &Credit> {
        self.credits.iter().filter(move |it| it.role == role)
    }

    /// Returns the text of every category, in the order of the guide.
    pub fn categories(&self) -> impl Iterator<Item = &str> {
        self.categories.iter().map(|it| it.text.as_str())
    }

    /// Returns the identifier in the Internet Movie Database: `tt0123456`.
    pub fn imdb_id(&self) -> Option<&str> {
        names::imdb_id(self)
    }

    /// Returns the number in The Movie Database.
    pub fn tmdb_id(&self) -> Option<&str> {
        names::number_in(self, &["themoviedb", "tmdb"])
    }

    /// Returns the number of the series in TheTVDB.
    pub fn tvdb_id(&self) -> Option<&str> {
        names::number_in(self, &["thetvdb", "tvdb"])
    }

    /// Returns every text that a search looks at: titles, subtitles, descriptions, categories and keywords.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let lists = [&self.titles, &self.sub_titles, &self.descriptions, &self.categories, &self.keywords];
        lists.into_iter().flatten().map(|it| it.text.as_str())
    }
}

fn first(texts: &[LocalText]) -> Option<&str> {
    texts.first().map(|it| it.text.as_str())
}

fn mentions_finale(text: &str) -> bool {
    text.as_bytes().windows("finale".len()).any(|it| it.eq_ignore_ascii_case(b"finale"))
}

#[cfg(test)]
mod tests;
