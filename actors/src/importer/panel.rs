//! Imports the live streams of a panel.
//!
//! Three questions, one after the other: is the login valid, which categories exist, which streams exist. The streams are
//! read while they arrive, element by element; from then on the import is that of any playlist.

use std::io;

use domain::entry_details::EntryDetails;
use domain::panel::{
    CATEGORIES_MAX, Categories, Element, ElementParser, ElementProblem, ListEnd, PanelAction, PanelLogin,
    PanelStream, read_category, read_stream,
};
use domain::playlist::content::ContentCounts;
use domain::playlist::m3u::{PlaylistProblem, PlaylistProblemKind};
use domain::stream::{RequestHeaders, StreamProperties};

use super::error::ImportError;
use super::job::{ImportSummary, Job};
use super::progress::RefreshPhase;
use super::reading::{ListKeys, ReadList};
use super::{logins, run};
use crate::fetch::Fetch;
use crate::memory::usable_bytes;
use crate::playlist::{self, PlaylistBytes, PlaylistFindings, PlaylistSource};
use crate::refresh::spool::{self, Spool};

/// Fetches the streams of a panel and imports them.
pub(super) async fn work(fetch: &Fetch, job: Job, login: PanelLogin) -> Result<ImportSummary, ImportError> {
    let account = job.account.clone();
    let located = PanelLogin { server: job.located(&login.server), ..login.clone() };
    let stop = job.stop.clone();
    let default = account.default_profile().ok_or(ImportError::AccountChanged)?;
    let asked =
        logins::check(&job.models, fetch, (&*account, job.address.as_ref()), default, job.options.now());
    let answer = stop.run_until_cancelled(asked).await.ok_or(ImportError::Stopped)??;
    if let Some(reason) = answer.state.refusal() {
        return Err(ImportError::Panel(reason.to_owned()));
    }
    let source = |action| {
        let reach = domain::egress::Reach::typed(account.allowed_networks);
        PlaylistSource::Url(located.api_url(action), account.headers.clone(), reach)
    };
    let turn = stop.run_until_cancelled(fetch.turn(account.id)).await.ok_or(ImportError::Stopped)?;
    let (fed, read) =
        playlist::feed(fetch, source(PanelAction::LiveCategories), &stop, read_categories).await;
    fed.map_err(ImportError::Fetch)?;
    let (categories, problems) = read.unwrap_or(Err(ImportError::Panicked))?;
    let streams = source(PanelAction::LiveStreams);
    let (fed, worked) = playlist::feed(fetch, streams, &stop, move |bytes| {
        run::run(&job, |keys| read_streams(&job, bytes, (&login, &categories), problems, keys))
    })
    .await;
    drop(turn);
    fed.map_err(ImportError::Fetch)?;
    worked.unwrap_or(Err(ImportError::Panicked))
}

/// Reads the list of categories to its end.
fn read_categories(bytes: PlaylistBytes) -> Result<(Categories, PlaylistFindings), ImportError> {
    let mut categories = Categories::new();
    let mut problems = PlaylistFindings::default();
    let mut number = 0;
    let end = read_elements(bytes, |_| Ok(()), &mut |element| {
        number += 1;
        let read = match element {
            Element::Value { json, .. } => read_category(json),
            Element::TooLong => Err(ElementProblem::TooLong),
        };
        match read {
            Ok(_) if categories.len() >= CATEGORIES_MAX => {
                problem(&mut problems, number, "category", ElementProblem::TooMany);
            }
            Ok((id, category)) => drop(categories.entry(id).or_insert(category)),
            Err(error) => problem(&mut problems, number, "category", error),
        }
    })?;
    check_end(end, "categories")?;
    Ok((categories, problems))
}

/// Reads the list of streams into a spool, and reports the progress.
fn read_streams(
    job: &Job,
    bytes: PlaylistBytes,
    (login, categories): (&PanelLogin, &Categories),
    mut findings: PlaylistFindings,
    mut keys: ListKeys,
) -> Result<ReadList, ImportError> {
    let mut entries = Spool::new(spool::bytes_max(usable_bytes()));
    let origin = bytes.origin();
    let (mut number, mut n_entries, mut n_categorised, mut n_read) = (0, 0, 0_u64, 0);
    let mut contents = ContentCounts::default();
    let mut written: io::Result<()> = Ok(());
    let mut refusal = None;
    job.reporter.update(|it| it.phase = RefreshPhase::Parsing);
    let on_piece = |n_bytes: u64| {
        job.check_stop()?;
        n_read += n_bytes;
        job.reporter.update(|it| it.bytes = n_read);
        Ok::<_, ImportError>(())
    };
    let end = read_elements(bytes, on_piece, &mut |element| {
        number += 1;
        let read = match element {
            // What panels send with status 200 in place of a list.
            Element::Value { key: Some(b"user_info"), .. } => {
                refusal = Some("the panel refuses to list its streams for this login");
                return;
            }
            Element::Value { json, .. } => read_stream(json),
            Element::TooLong => Err(ElementProblem::TooLong),
        };
        match read {
            Ok(_) if n_entries >= job.options.limits.entries_max => {
                problem(&mut findings, number, "stream", ElementProblem::TooMany);
            }
            Ok(stream) => {
                n_categorised += u64::from(stream.category.is_some());
                n_entries += 1;
                contents.add(stream.content);
                if written.is_ok() {
                    let properties = properties(stream, login, categories);
                    keys.add(&properties);
                    written = entries.push(&properties);
                }
            }
            Err(error) => problem(&mut findings, number, "stream", error),
        }
    })?;
    if let Some(reason) = refusal {
        return Err(ImportError::Panel(reason.to_owned()));
    }
    check_end(end, "streams")?;
    written?;
    if categories.is_empty() && n_categorised > 0 {
        return Err(ImportError::Panel(
            "the panel lists no categories, although its streams have some".to_owned(),
        ));
    }
    findings.n_entries = n_entries;
    job.reporter.update(|it| it.entries = n_entries);
    Ok(ReadList { entries, keys, findings, contents, origin: origin.get().copied() })
}

/// Splits the elements of a list. `on_piece` is called with the number of bytes of each piece.
fn read_elements(
    bytes: PlaylistBytes,
    mut on_piece: impl FnMut(u64) -> Result<(), ImportError>,
    on_element: &mut impl FnMut(Element<'_>),
) -> Result<ListEnd, ImportError> {
    let mut parser = ElementParser::new(ElementParser::ELEMENT_BYTES_MAX);
    bytes.for_each_piece(|piece| {
        parser.push(piece, on_element);
        on_piece(piece.len() as u64)
    })?;
    Ok(parser.finish())
}

/// Refuses a list that is not complete: what is missing from it would count as removed.
fn check_end(end: ListEnd, what: &str) -> Result<(), ImportError> {
    match end {
        ListEnd::Complete => Ok(()),
        ListEnd::Truncated => Err(ImportError::Panel(format!("the panel's list of {what} is cut off"))),
        ListEnd::NotAList(reason) => Err(ImportError::Panel(format!("{reason} of {what}"))),
    }
}

fn problem(findings: &mut PlaylistFindings, number: u64, what: &str, error: ElementProblem) {
    findings.problem(PlaylistProblem {
        line: number,
        kind: PlaylistProblemKind::PanelElement,
        text: format!("{what} {number} was left out: {error}"),
    });
}

/// Returns the properties of a stream of a panel.
fn properties(stream: PanelStream, login: &PanelLogin, categories: &Categories) -> StreamProperties {
    let category = stream.category.and_then(|it| categories.get(&it));
    StreamProperties {
        url: login.stream_url(stream.id),
        name: stream.name,
        headers: RequestHeaders::default(),
        tvg_id: stream.tvg_id,
        group: category.map(|it| it.name.clone()),
        is_adult: stream.is_adult || category.is_some_and(|it| it.is_adult),
        logo: stream.logo,
        number: stream.number,
        guide_offset: 0,
        archive: stream.archive.filter(|_| stream.content.is_live()).map(Box::new),
        details: stream.is_radio.then(|| Box::new(EntryDetails::radio())),
        content: stream.content,
    }
}

#[cfg(test)]
mod tests {
    use domain::secret::Secret;
    use domain::source_url::SourceUrl;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stream_is_adult_if_it_or_its_category_is_marked() {
        let server = SourceUrl::new("http://panel.example");
        let login = PanelLogin { server, username: "u".to_owned(), password: Secret::new("p") };
        let category = |id: &str, is_adult| {
            let json = json!({ "category_id": id, "category_name": id, "is_adult": is_adult });
            read_category(json.to_string().as_bytes()).unwrap()
        };
        let categories = Categories::from([category("1", "0"), category("2", "1")]);
        for (element, group, is_adult) in [
            (json!({ "stream_id": 7, "category_id": "1", "is_adult": "1" }), Some("1"), true),
            (json!({ "stream_id": 7, "category_id": "2", "is_adult": "0" }), Some("2"), true),
            (json!({ "stream_id": 7, "category_id": "1", "is_adult": "0" }), Some("1"), false),
            (json!({ "stream_id": 7, "category_id": "9" }), None, false),
            (json!({ "stream_id": 7 }), None, false),
        ] {
            let stream = read_stream(element.to_string().as_bytes()).unwrap();
            let properties = properties(stream, &login, &categories);
            assert_eq!((properties.group.as_deref(), properties.is_adult), (group, is_adult), "{element}");
        }
    }
}
