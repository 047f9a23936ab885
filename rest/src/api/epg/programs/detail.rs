//! One programme with everything that its guide says.

use domain::guide::programme::{CreditRole, LocalText, Programme, ProgrammeRating};
use resource_derive::View;
use route_frame::call::Call;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Value, json};
use services::addresses::poster_address;
use services::guide::{EntryId, GuideEntry};

use super::values::{ImageAddresses, ProgramImageView, time};

/// A programme with everything that its guide says.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ProgramDetail")]
pub(crate) struct ProgramDetailView {
    /// Same as in the list of programmes.
    #[field(example = "4503601413783552")]
    id: EntryId,
    /// Start of the programme.
    start_time: Time,
    /// End of the programme.
    end_time: Time,
    /// Title in the first language of the guide, without marks such as `(New)`: the one that rules compare.
    title: String,
    /// The title as the guide writes it, for people.
    display_title: String,
    /// Title of the episode.
    sub_title: Option<String>,
    /// Description.
    description: Option<String>,
    /// Id of the channel in its guide source; the UUID of the channel for a generated guide.
    tvg_id: String,
    /// Number of the season.
    season: Option<u32>,
    /// Number of the episode.
    episode: Option<u32>,
    /// Whether it is shown for the first time.
    is_new: bool,
    /// Whether it is broadcast live.
    is_live: bool,
    /// Whether it is the first episode of a season or series.
    is_premiere: bool,
    /// Whether it is the last episode of a season or series.
    is_finale: bool,
    /// Categories.
    categories: Vec<String>,
    /// Words that describe the programme.
    keywords: Vec<String>,
    /// Rating by age.
    rating: Option<String>,
    /// System of that rating.
    rating_system: Option<String>,
    /// Ratings by critics.
    star_ratings: Vec<RatingView>,
    /// People of the programme.
    credits: ProgramCreditsView,
    /// Quality of the picture.
    video_quality: Option<String>,
    /// Shape of the picture.
    #[field(example = "16:9")]
    aspect_ratio: Option<String>,
    /// Kind of sound.
    #[field(example = "stereo")]
    stereo: Option<String>,
    /// Whether it is a repetition.
    is_previously_shown: bool,
    /// Country of production.
    country: Option<String>,
    /// Language of the programme.
    language: Option<String>,
    /// Date of production, with the precision of the guide.
    production_date: Option<String>,
    /// When it was shown first, as the guide says it.
    original_air_date: Option<String>,
    /// Reserved; always empty.
    content_advisory: Vec<String>,
    /// Further ratings by age.
    content_ratings: Vec<RatingView>,
    /// Reserved; always `null`.
    event_details: Value,
    /// Length without advertisements.
    runtime: Option<u32>,
    /// Unit of `runtime`.
    #[field(example = "minutes")]
    runtime_units: Option<&'static str>,
    /// Id in the Internet Movie Database.
    imdb_id: Option<String>,
    /// Id in The Movie Database.
    tmdb_id: Option<String>,
    /// Id in TheTVDB.
    tvdb_id: Option<String>,
    /// URL of the first image. Users other than admins see no credentials in it.
    icon: Option<String>,
    /// Images with a description.
    images: Vec<ProgramImageView>,
    /// URL of the copy of an image that the gateway serves, which needs no credentials.
    poster_url: Option<String>,
    /// Languages of the titles, and the title in each.
    titles: Vec<TitleView>,
}

/// A rating of a programme.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ProgramRating")]
pub(crate) struct RatingView {
    /// The rating, in stars such as `7/10` or by age such as `PG`.
    value: String,
    /// Name of the rating body, such as `MPAA`.
    #[field(may_be_absent)]
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
}

/// A title in one language.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ProgramTitle")]
pub(crate) struct TitleView {
    /// Language, as the guide writes it.
    lang: Option<String>,
    /// Title.
    text: String,
}

/// People of a programme.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ProgramCredits")]
pub(crate) struct ProgramCreditsView {
    /// Actors, with the characters that they play.
    actors: Vec<ActorView>,
    /// Directors.
    directors: Vec<String>,
    /// Writers.
    writers: Vec<String>,
    /// Producers.
    producers: Vec<String>,
    /// Presenters.
    presenters: Vec<String>,
    /// Commentators.
    commentators: Vec<String>,
    /// Guests.
    guests: Vec<String>,
}

/// An actor.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ProgramActor")]
pub(crate) struct ActorView {
    /// Name of the actor.
    name: String,
    /// The character that the actor plays.
    role: Option<String>,
}

impl ProgramDetailView {
    pub(super) fn new(call: &Call, entry: &GuideEntry, tvg_id: String) -> Self {
        let programme = entry.programme();
        let addresses = ImageAddresses::new(call);
        let (season, episode) = programme.season_episode();
        let text = |it: Option<&str>| it.map(str::to_owned);
        let texts = |it: &[LocalText]| it.iter().map(|it| it.text.clone()).collect::<Vec<_>>();
        let mut ratings = programme.ratings.iter().map(RatingView::new);
        let rating = ratings.next();
        let poster = programme.picture();
        Self {
            id: entry.id,
            start_time: time(entry.start),
            end_time: time(entry.stop),
            title: programme.plain_title().into_owned(),
            display_title: programme.title().to_owned(),
            sub_title: text(programme.sub_title()),
            description: text(programme.description()),
            tvg_id,
            season,
            episode,
            is_new: programme.is_new(),
            is_live: programme.is_live(),
            is_premiere: programme.is_premiere(),
            is_finale: programme.is_finale(),
            categories: texts(&programme.categories),
            keywords: texts(&programme.keywords),
            rating: rating.as_ref().map(|it| it.value.clone()),
            rating_system: rating.and_then(|it| it.system),
            star_ratings: programme.star_ratings.iter().map(RatingView::new).collect(),
            credits: ProgramCreditsView::new(&programme),
            video_quality: programme.video.as_ref().and_then(|it| it.quality.clone()),
            aspect_ratio: programme.video.as_ref().and_then(|it| it.aspect.clone()),
            stereo: programme.audio.as_ref().and_then(|it| it.stereo.clone()),
            is_previously_shown: programme.is_previously_shown(),
            country: programme.countries.first().map(|it| it.text.clone()),
            language: programme.language.as_ref().map(|it| it.text.clone()),
            production_date: programme.date.clone(),
            original_air_date: programme.previously_shown.as_ref().and_then(|it| it.start.clone()),
            content_advisory: Vec::new(),
            content_ratings: ratings.collect(),
            event_details: Value::Null,
            runtime: programme.length.map(|it| it.value),
            runtime_units: programme.length.map(|it| it.unit.word()),
            imdb_id: text(programme.imdb_id()),
            tmdb_id: text(programme.tmdb_id()),
            tvdb_id: text(programme.tvdb_id()),
            icon: programme.icon().map(|it| addresses.shown(it)),
            images: programme.images.iter().map(|it| ProgramImageView::new(it, addresses)).collect(),
            poster_url: poster.map(|_| poster_address(&call.origin(), entry.id)),
            titles: programme
                .titles
                .iter()
                .map(|it| TitleView { lang: it.lang.clone(), text: it.text.clone() })
                .collect(),
        }
    }
}

impl RatingView {
    fn new(rating: &ProgrammeRating) -> Self {
        Self { value: rating.value.clone(), system: rating.system.clone() }
    }
}

impl ProgramCreditsView {
    fn new(programme: &Programme) -> Self {
        let names = |role| programme.people(role).map(|it| it.name.clone()).collect();
        let actors = programme.people(CreditRole::Actor);
        Self {
            actors: actors
                .map(|it| ActorView { name: it.name.clone(), role: it.character.clone() })
                .collect(),
            directors: names(CreditRole::Director),
            writers: names(CreditRole::Writer),
            producers: names(CreditRole::Producer),
            presenters: names(CreditRole::Presenter),
            commentators: names(CreditRole::Commentator),
            guests: names(CreditRole::Guest),
        }
    }
}

/// Returns the properties of a programme that search results contain, without those that it does not have.
pub(super) fn custom_properties(programme: &Programme, addresses: ImageAddresses) -> Value {
    let (season, episode) = programme.season_episode();
    let rating = programme.ratings.first();
    let onscreen = programme.episode_numbers.iter().find(|it| it.system.as_deref() == Some("onscreen"));
    let is = |flag: bool| flag.then_some(true);
    let mut properties = json!({
        "categories": programme.categories().collect::<Vec<_>>(),
        "date": programme.date,
        "season": season,
        "episode": episode,
        "onscreen_episode": onscreen.map(|it| &it.value),
        "icon": programme.icon().map(|it| addresses.shown(it)),
        "rating": rating.map(|it| &it.value),
        "rating_system": rating.and_then(|it| it.system.as_ref()),
        "new": is(programme.is_new()),
        "live": is(programme.is_live()),
        "premiere": is(programme.is_premiere()),
        "previously_shown": is(programme.is_previously_shown()),
    });
    if let Some(members) = properties.as_object_mut() {
        members.retain(|_, it| !it.is_null() && it.as_array().is_none_or(|it| !it.is_empty()));
    }
    properties
}
