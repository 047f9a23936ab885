//! One run: finds the titles that are due, asks for each one, and stores the answers.

use std::collections::BTreeSet;

use actors::now_ms;
use domain::ids::EpisodeId;
use domain::tmdb::{
    Choice, CompletedTitle, CompletionSettings, PictureAddresses, SearchAnswer, choose, episodes_in, fits,
    found_by_imdb_id,
};
use domain::vod::{
    Completion, CompletionOutcome, CompletionQuestion, EpisodeFacts, Title, TitleId, TitleKind,
};
use media::spawn_blocking;
use storage::{CompletedRecord, Models};
use tokio_util::sync::CancellationToken;

use super::client::{AskError, Client};
use super::{CompletionProgress, Inner};

/// Answers that are stored in one commit.
const ANSWERS_PER_WRITE: usize = 20;
/// Titles without a useful answer, one after the other, that end a run.
const FAILURES_MAX: usize = 5;
/// Maximum number of seasons of a series that are asked for.
const SEASONS_MAX: usize = 60;

/// A title to ask for.
struct DueTitle {
    id: TitleId,
    question: CompletionQuestion,
}

/// A run that is under way.
pub(super) struct Run<'a> {
    inner: &'a Inner,
    settings: CompletionSettings,
    stop: &'a CancellationToken,
}

impl<'a> Run<'a> {
    pub(super) fn new(inner: &'a Inner, settings: CompletionSettings, stop: &'a CancellationToken) -> Self {
        Self { inner, settings, stop }
    }

    /// Runs to the end, or until it is stopped. Progress and errors are in the shared state.
    pub(super) async fn run(&self, titles: Option<Vec<TitleId>>) {
        if let Err(message) = self.try_run(titles).await {
            self.inner.progress.lock().message = message;
        }
    }

    async fn try_run(&self, titles: Option<Vec<TitleId>>) -> Result<(), String> {
        let (models, settings) = (self.inner.models.clone(), self.settings.clone());
        let (due, n_left_out) = blocking(move || due_titles(&models, &settings, titles)).await?;
        if due.is_empty() {
            return Ok(());
        }
        self.note(|it| (it.n_titles, it.n_left_out) = (due.len(), n_left_out));
        let client = Client::new(&self.inner.fetch, self.inner.delays, &self.settings);
        let pictures = tokio::select! {
            () = self.stop.cancelled() => return Err("the completion was stopped".to_owned()),
            answer = client.get("configuration", &[]) => answer.map_err(|it| it.to_string())?,
        };
        let asker =
            Asker { client, pictures: PictureAddresses::read(&pictures), language: &self.settings.language };
        let ended = self.ask_all(&asker, due).await;
        // Also after a run that ended early.
        let (titles, stop) = (self.inner.models.vod.clone(), self.stop.clone());
        let joined = blocking(move || titles.join_same(now_ms(), &|| stop.is_cancelled()));
        if let Ok(n_joined) = joined.await {
            self.note(|it| it.n_joined = n_joined);
        }
        ended
    }

    fn note(&self, change: impl FnOnce(&mut CompletionProgress)) {
        change(&mut self.inner.progress.lock());
    }

    async fn ask_all(&self, asker: &Asker<'_>, due: Vec<DueTitle>) -> Result<(), String> {
        let (mut answers, mut n_failures, mut ended) = (Vec::new(), 0, Ok(()));
        for title in due {
            let answer = tokio::select! {
                () = self.stop.cancelled() => {
                    ended = Err("the completion was stopped".to_owned());
                    break;
                }
                answer = self.ask(asker, &title) => answer,
            };
            match answer {
                Ok(answer) => {
                    n_failures = 0;
                    self.note(|it| it.count(answer.completion.outcome));
                    answers.push(answer);
                }
                Err(error @ AskError::Ending(_)) => {
                    ended = Err(error.to_string());
                    break;
                }
                Err(error) => {
                    n_failures += 1;
                    self.note(|it| (it.n_failed, it.message) = (it.n_failed + 1, error.to_string()));
                    if n_failures >= FAILURES_MAX {
                        ended = Err(error.to_string());
                        break;
                    }
                }
            }
            if answers.len() >= ANSWERS_PER_WRITE {
                self.store(std::mem::take(&mut answers)).await?;
            }
        }
        self.store(answers).await?;
        ended
    }

    async fn store(&self, answers: Vec<CompletedRecord>) -> Result<(), String> {
        let titles = self.inner.models.vod.clone();
        blocking(move || titles.put_completions(answers, now_ms())).await
    }

    /// Asks for a title, and for the episodes that are known of a series.
    async fn ask(&self, asker: &Asker<'_>, due: &DueTitle) -> Result<CompletedRecord, AskError> {
        let (outcome, found) = asker.find(&due.question).await?;
        let mut episodes = Vec::new();
        if let Some(found) = found.as_ref().filter(|_| due.id.kind() == TitleKind::Series) {
            let (titles, id) = (self.inner.models.vod.clone(), due.id);
            let known = blocking(move || titles.episodes_of(id)).await.map_err(AskError::Failed)?;
            let known: Vec<_> = known.iter().map(|it| (it.season, it.number, it.id)).collect();
            episodes = asker.episodes(found.candidate.id, &known).await?;
        }
        let (facts, properties) = found.map(|it| (it.facts, it.properties)).unzip();
        let completion = Completion {
            asked_at: 0,
            question: due.question.key(&self.settings.language),
            outcome,
            facts,
            properties: properties.unwrap_or_default(),
        };
        Ok(CompletedRecord { title: due.id, completion, episodes })
    }
}

/// Returns the titles to ask for, and the number of those that the limit leaves out. Reads all titles unless some are named.
fn due_titles(
    models: &Models,
    settings: &CompletionSettings,
    named: Option<Vec<TitleId>>,
) -> Result<(Vec<DueTitle>, usize), storage::Error> {
    let max = usize::try_from(settings.titles_per_run).unwrap_or(usize::MAX);
    let (mut due, mut n_left_out, now) = (Vec::new(), 0, now_ms());
    let mut add = |title: &Title, question: CompletionQuestion| {
        if due.len() < max {
            due.push(DueTitle { id: title.id, question });
        } else {
            n_left_out += 1;
        }
    };
    match named {
        Some(ids) => {
            for id in ids {
                if let Some(title) = models.vod.get(id)?
                    && let Some(question) = CompletionQuestion::new(&title)
                {
                    add(&title, question);
                }
            }
        }
        None => models.vod.for_each(|title| {
            let question = CompletionQuestion::new(&title).filter(|_| !title.is_stale());
            if let Some(question) = question.filter(|it| it.is_due(&title, &settings.language, now)) {
                add(&title, question);
            }
        })?,
    }
    Ok((due, n_left_out))
}

/// Asks the questions about one title.
struct Asker<'a> {
    client: Client<'a>,
    pictures: PictureAddresses,
    language: &'a str,
}

/// The word of the catalogue for a kind.
fn kind_path(kind: TitleKind) -> &'static str {
    match kind {
        TitleKind::Movie => "movie",
        TitleKind::Series => "tv",
    }
}

/// A title that was found, with its details.
type Found = (CompletionOutcome, Option<CompletedTitle>);

impl Asker<'_> {
    /// Finds a title: by the ids that are stated, unless they are those of another title, else by name and year.
    async fn find(&self, question: &CompletionQuestion) -> Result<Found, AskError> {
        for id in [question.tmdb.clone(), self.id_of_imdb(question).await?].into_iter().flatten() {
            let found = self.details(question.kind, &id).await?;
            if let Some(found) = found.filter(|it| fits(question, &it.candidate)) {
                return Ok((CompletionOutcome::Found, Some(found)));
            }
        }
        if question.name.words.is_empty() {
            return Ok((CompletionOutcome::Unknown, None));
        }
        Ok(match self.search(question).await? {
            Choice::One(id) => match self.details(question.kind, &id.to_string()).await? {
                Some(found) => (CompletionOutcome::Found, Some(found)),
                None => (CompletionOutcome::Unknown, None),
            },
            Choice::Ambiguous => (CompletionOutcome::Ambiguous, None),
            Choice::Nothing => (CompletionOutcome::Unknown, None),
        })
    }

    async fn id_of_imdb(&self, question: &CompletionQuestion) -> Result<Option<String>, AskError> {
        let Some(imdb) = question.imdb.as_ref().filter(|_| question.tmdb.is_none()) else { return Ok(None) };
        match self.client.get(&format!("find/{imdb}"), &[("external_source", "imdb_id")]).await {
            Ok(answer) => Ok(found_by_imdb_id(question.kind, &answer).map(|it| it.to_string())),
            Err(AskError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks for the details under an id; `None` if there are none.
    async fn details(&self, kind: TitleKind, id: &str) -> Result<Option<CompletedTitle>, AskError> {
        let path = format!("{}/{id}", kind_path(kind));
        let parameters = [("language", self.language), ("append_to_response", "external_ids")];
        match self.client.get(&path, &parameters).await {
            Ok(answer) => {
                let read = CompletedTitle::read(&answer, &self.pictures);
                read.map(Some).ok_or_else(|| malformed("details"))
            }
            Err(AskError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Searches by name: with the year, then with the years before and after, so that each search has few results.
    async fn search(&self, question: &CompletionQuestion) -> Result<Choice, AskError> {
        let Some(year) = question.year else {
            let answer = self.search_year(question, None).await?;
            return Ok(choose(question, &answer.candidates, answer.is_complete));
        };
        let answer = self.search_year(question, Some(year)).await?;
        let choice = choose(question, &answer.candidates, answer.is_complete);
        if choice != Choice::Nothing {
            return Ok(choice);
        }
        let mut near = Vec::new();
        for year in [year.saturating_sub(1), year.saturating_add(1)] {
            near.extend(self.search_year(question, Some(year)).await?.candidates);
        }
        Ok(choose(question, &near, true))
    }

    async fn search_year(
        &self,
        question: &CompletionQuestion,
        year: Option<u16>,
    ) -> Result<SearchAnswer, AskError> {
        let (path, of_year) = match question.kind {
            TitleKind::Movie => ("search/movie", "primary_release_year"),
            TitleKind::Series => ("search/tv", "first_air_date_year"),
        };
        let year = year.map(|it| it.to_string());
        let mut parameters = vec![
            ("query", &*question.name.words),
            ("language", self.language),
            ("include_adult", "false"),
            ("page", "1"),
        ];
        parameters.extend(year.as_deref().map(|it| (of_year, it)));
        let answer = self.client.get(path, &parameters).await?;
        SearchAnswer::read(&answer).ok_or_else(|| malformed("a search"))
    }

    /// Asks for the seasons of known episodes, given by season, number and id.
    async fn episodes(
        &self,
        series: u32,
        known: &[(u32, u32, EpisodeId)],
    ) -> Result<Vec<(EpisodeId, EpisodeFacts)>, AskError> {
        let seasons: BTreeSet<u32> = known.iter().map(|it| it.0).collect();
        let mut completed = Vec::new();
        for season in seasons.into_iter().take(SEASONS_MAX) {
            let path = format!("tv/{series}/season/{season}");
            let answer = match self.client.get(&path, &[("language", self.language)]).await {
                Ok(answer) => answer,
                // Providers number some seasons by the year.
                Err(AskError::Missing) => continue,
                Err(error) => return Err(error),
            };
            let found = episodes_in(season, &answer, &self.pictures);
            for episode in found.ok_or_else(|| malformed("a season"))? {
                let is_it = |it: &&(u32, u32, EpisodeId)| (it.0, it.1) == (season, episode.number);
                completed.extend(known.iter().find(is_it).map(|it| (it.2, episode.facts.clone())));
            }
        }
        Ok(completed)
    }
}

fn malformed(what: &str) -> AskError {
    AskError::Failed(format!("TMDB answers {what} in a shape that is not documented"))
}

/// Runs a function on a thread that may block.
async fn blocking<T: Send + 'static, E: std::fmt::Display + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, String> {
    match spawn_blocking(work).await {
        Ok(done) => done.map_err(|it| it.to_string()),
        Err(error) => Err(error.to_string()),
    }
}
