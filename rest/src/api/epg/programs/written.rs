//! Programmes that clients write, in guide sources of the kind `written`.

use std::sync::Arc;

use actors::{GuideError, WrittenEdit, WrittenError};
use domain::guide::channel::GuideChannel;
use domain::guide::programme::{EpisodeNumber, LocalText, Programme, ProgrammeIcon, ProgrammeId, from_xml};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::GuideSourceId;
use node::uploads::share_programmes;
use resource_derive::Body;
use route_frame::call::Call;
use route_frame::route::{Created, NoContent};
use route_frame::value::{Time, WebUrl};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use services::guide::{DAY, EntryId, GuideEntry, read_guide};

use super::detail::ProgramDetailView;
use super::values::unknown;
use crate::context::RestCall;
use crate::record::set;

/// Maximum length of a title, in characters.
const TITLE_CHARS_MAX: usize = 255;
/// Maximum length of a programme, in seconds.
const PROGRAMME_SPAN_MAX: i64 = 31 * DAY;
/// Maximum number of categories of a programme.
const CATEGORIES_MAX: usize = 50;

/// A programme of a written guide.
#[derive(Clone, Debug, Body)]
#[resource(name = "WrittenProgram", edit = ProgramEdit)]
pub(crate) struct NewProgram {
    /// Start of the programme.
    start_time: Time,
    /// End of the programme.
    end_time: Time,
    /// Title.
    #[field(chars_max = TITLE_CHARS_MAX, example = "Evening News")]
    title: String,
    /// Title with marks such as `(New)`, as it is shown. It counts instead of `title`, unless it is the present one.
    #[field(chars_max = TITLE_CHARS_MAX, example = "Evening News (New)")]
    display_title: Option<String>,
    /// Id of the channel in the guide source. A new id creates a guide channel.
    #[field(chars_max = TITLE_CHARS_MAX, example = "news.example")]
    pub(super) tvg_id: String,
    /// Title of the episode.
    #[field(blank, chars_max = TITLE_CHARS_MAX)]
    sub_title: Option<Option<String>>,
    /// Description.
    #[field(blank)]
    description: Option<Option<String>>,
    /// Id of the guide source; not needed if only one is of the kind `written`.
    pub(super) epg_source: Option<GuideSourceId>,
    /// Categories.
    #[field(items_max = CATEGORIES_MAX, chars_max = TITLE_CHARS_MAX, example = "[\"News\"]")]
    categories: Option<Vec<String>>,
    /// URL of an image.
    icon: Option<Option<WebUrl>>,
    /// Number of the season.
    #[field(at_least = 1, at_most = 100_000)]
    season: Option<Option<u32>>,
    /// Number of the episode.
    #[field(at_least = 1, at_most = 100_000)]
    episode: Option<Option<u32>>,
    /// Whether it is shown for the first time.
    is_new: Option<bool>,
    /// Whether it is broadcast live.
    is_live: Option<bool>,
}

pub(super) async fn create(call: Call, new: NewProgram) -> Result<Created<ProgramDetailView>, Refusal> {
    let source = written_source(&call, new.epg_source)?;
    let tvg_id = new.tvg_id.clone();
    let programme = new.programme().map_err(Refusal::fields)?;
    Ok(Created(put(&call, source, tvg_id, programme, None).await?))
}

impl NewProgram {
    /// Returns the programme that a client sent.
    pub(super) fn programme(self) -> Result<Programme, FieldErrors> {
        let mut programme = Programme::default();
        apply(ProgramEdit::from(self), &mut programme)?;
        Ok(programme)
    }
}

pub(super) async fn update(call: Call, edit: ProgramEdit) -> Result<ProgramDetailView, Refusal> {
    let _turn = call.rest().guide.written_programme.lock().await;
    let (id, before, mut programme) = find_written(&call).await?;
    if edit.epg_source.is_some_and(|it| it != before.source) {
        return Err(Refusal::field("epg_source", "A programme cannot move to another guide source."));
    }
    let tvg_id = edit.tvg_id.clone().unwrap_or_else(|| before.key.clone());
    apply(edit, &mut programme).map_err(Refusal::fields)?;
    put(&call, before.source, tvg_id, programme, Some(id)).await
}

pub(super) async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let (id, channel, _) = find_written(&call).await?;
    write(&call, channel.source, WrittenEdit::Remove(id)).await?;
    Ok(NoContent)
}

/// Returns the guide source that a new programme belongs to.
pub(super) fn written_source(call: &Call, wanted: Option<GuideSourceId>) -> Result<GuideSourceId, Refusal> {
    let sources = call.rest().models.guide_sources.load();
    match wanted {
        Some(id) => {
            let source = sources.get(id.0).ok_or_else(|| Refusal::no_such("epg_source", id))?;
            check_written(source).map(|()| id)
        }
        None => {
            let mut written = sources.iter().filter(|it| it.kind == GuideSourceKind::Written);
            match (written.next(), written.next()) {
                (Some(only), None) => Ok(only.id),
                (None, _) => {
                    Err(Refusal::field("epg_source", "There is no guide source of the kind \"written\"."))
                }
                (Some(_), Some(_)) => {
                    Err(Refusal::field("epg_source", "Several guide sources are of the kind \"written\"."))
                }
            }
        }
    }
}

fn check_written(source: &GuideSource) -> Result<(), Refusal> {
    match source.kind {
        GuideSourceKind::Written => Ok(()),
        _ => Err(not_written()),
    }
}

fn not_written() -> Refusal {
    let message = "The programmes of this guide source cannot be changed: it is not of the kind \"written\".";
    Refusal::field("epg_source", message)
}

/// Returns the programme in the path as its written guide has it: other guides of a channel neither cut nor complete it.
async fn find_written(call: &Call) -> Result<(ProgrammeId, Arc<GuideChannel>, Programme), Refusal> {
    let id: EntryId = call.text("program")?.parse().map_err(|()| unknown())?;
    let EntryId::Stored(id, _) = id else { return Err(unknown()) };
    let guides = call.rest().guide.guides.reader();
    let sources = Arc::clone(&guides.sources);
    let (channel, stored) = read_guide(move || guides.in_file(id).ok_or_else(unknown)).await?;
    check_written(sources.get(channel.source.0).ok_or_else(unknown)?)?;
    let programme = from_xml(stored.start, stored.stop, &stored.inner);
    // A damaged one has only its times.
    let empty = |_| Programme { start: stored.start, stop: stored.stop, ..Programme::default() };
    Ok((id, channel, programme.unwrap_or_else(empty)))
}

/// Changes a programme as the client sent it.
fn apply(edit: ProgramEdit, programme: &mut Programme) -> Result<(), FieldErrors> {
    let seconds = |it: Time| it.0.div_euclid(1000);
    let texts = |it: Option<String>| it.filter(|it| !it.is_empty()).map(LocalText::new).into_iter().collect();
    set(&mut programme.start, edit.start_time.map(seconds));
    set(&mut programme.stop, edit.end_time.map(seconds));
    // A client that sends back what it read sends the title without its marks, and both as they were.
    let shown = edit.display_title.filter(|it| it != programme.title());
    let title = shown.or_else(|| edit.title.filter(|it| *it != programme.plain_title()));
    set(&mut programme.titles, title.map(|it| vec![LocalText::new(it)]));
    set(&mut programme.sub_titles, edit.sub_title.map(texts));
    set(&mut programme.descriptions, edit.description.map(texts));
    set(&mut programme.is_new, edit.is_new);
    set(&mut programme.is_live, edit.is_live);
    let categories = edit.categories.map(|all| all.into_iter().map(LocalText::new).collect());
    set(&mut programme.categories, categories);
    let icons = edit.icon.map(|it| it.filter(|it| !it.0.is_empty()));
    let icons = icons.map(|it| it.map(|it| ProgrammeIcon { src: it.0, ..ProgrammeIcon::default() }));
    set(&mut programme.icons, icons.map(|it| it.into_iter().collect()));
    if edit.season.is_some() || edit.episode.is_some() {
        let (season, episode) = programme.season_episode();
        let numbers = [edit.season.unwrap_or(season), edit.episode.unwrap_or(episode)];
        programme.episode_numbers = episode_numbers(numbers);
    }
    if programme.stop <= programme.start {
        return Err(FieldErrors::new("end_time", "The end must be after the start."));
    }
    if programme.stop - programme.start > PROGRAMME_SPAN_MAX {
        return Err(FieldErrors::new("end_time", "A programme lasts at most 31 days."));
    }
    if !(ProgrammeId::START_MIN..=ProgrammeId::START_MAX).contains(&programme.start) {
        return Err(FieldErrors::new("start_time", "The start must be between the years 2000 and 2136."));
    }
    Ok(())
}

/// Returns the numbers of season and episode in both notations that readers expect.
fn episode_numbers([season, episode]: [Option<u32>; 2]) -> Vec<EpisodeNumber> {
    if season.is_none() && episode.is_none() {
        return Vec::new();
    }
    let from_zero = |it: Option<u32>| it.map(|it| it.saturating_sub(1).to_string()).unwrap_or_default();
    let part = |mark: &str, it: Option<u32>| it.map(|it| format!("{mark}{it:02}")).unwrap_or_default();
    let number = |system: &str, value: String| EpisodeNumber { system: Some(system.to_owned()), value };
    vec![
        number("onscreen", part("S", season) + &part("E", episode)),
        number("xmltv_ns", format!("{}.{}.", from_zero(season), from_zero(episode))),
    ]
}

/// Writes a programme in place of another one, or as a new one.
async fn put(
    call: &Call,
    source: GuideSourceId,
    tvg_id: String,
    programme: Programme,
    replaces: Option<ProgrammeId>,
) -> Result<ProgramDetailView, Refusal> {
    let edit = WrittenEdit::Put { key: tvg_id.clone(), programme: Box::new(programme.clone()), replaces };
    let ids = write(call, source, edit).await?;
    let id = ids.first().copied().ok_or_else(unknown)?;
    Ok(ProgramDetailView::new(call, &GuideEntry::written(EntryId::Stored(id, 0), &programme), tvg_id))
}

async fn write(call: &Call, source: GuideSourceId, edit: WrittenEdit) -> Result<Vec<ProgrammeId>, Refusal> {
    write_all(call, source, vec![edit]).await
}

/// Makes all of these changes or none.
pub(super) async fn write_all(
    call: &Call,
    source: GuideSourceId,
    edits: Vec<WrittenEdit>,
) -> Result<Vec<ProgrammeId>, Refusal> {
    let done = call.rest().guide.guide_refreshes.write_programmes(source, edits).await;
    let done = done.map_err(|error| match error {
        WrittenError::NoSuchSource | WrittenError::Guide(GuideError::SourceChanged) => {
            Refusal::no_such("epg_source", source)
        }
        WrittenError::NotWritten => not_written(),
        WrittenError::NoSuchProgramme => unknown(),
        WrittenError::Times => Refusal::field("start_time", "The times are invalid."),
        WrittenError::TooMany { what, max } => {
            Refusal::field("epg_source", format!("A written guide has at most {max} {what}."))
        }
        WrittenError::Guide(error @ GuideError::NotHere) => {
            Refusal::unavailable(format!("The programmes cannot be changed: {error}.")).retry_soon()
        }
        WrittenError::Guide(error) => Refusal::fault(format_args!("write a guide: {error}")),
    })?;
    share_programmes(&call.rest().nodes, source).await?;
    Ok(done)
}
