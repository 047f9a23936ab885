//! `/api/core/logs/`: the newest lines of the log.

use resource_derive::{Query, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use services::recent_log::{LINES_MAX, LogLine};
use tracing::Level;

use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::list::Search;

/// Selects lines of the log.
#[derive(Debug, Query)]
pub(crate) struct LogQuery {
    /// The least severe level in the answer; all levels by default.
    #[field(example = "warn")]
    level: Option<Named<LogLineLevel>>,
    /// Beginning of the name of the module, such as `actors::channel`.
    #[field(example = "actors")]
    target: Option<String>,
    /// Part of the text, regardless of case.
    search: Option<Search>,
    /// Lines with a larger id only: for clients that ask again.
    #[field(at_least = 0)]
    after: Option<u64>,
    /// Maximum number of lines; 200 by default.
    #[field(at_least = 1, at_most = LINES_MAX as i64, example = "200")]
    limit: Option<usize>,
}

/// The newest lines of the log since the start. At most 2,000 are kept.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct LogView {
    /// The newest line first.
    lines: Vec<LogLineView>,
    /// Number of lines in the answer.
    #[field(example = "1")]
    count: usize,
}

/// A line of the log, without credentials.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct LogLineView {
    /// Increases with each line.
    #[field(example = "12")]
    id: u64,
    /// When it was written.
    timestamp: Time,
    /// Its level.
    level: Named<LogLineLevel>,
    /// The module that wrote it.
    #[field(example = "actors::channel::actor")]
    target: String,
    /// The message with its values.
    #[field(example = "channel started channel=News")]
    message: String,
}

choice!(
    enum LogLineLevel {
        Error = "error",
        Warn = "warn",
        Info = "info",
        Debug = "debug",
        Trace = "trace",
    }
);

/// Number of lines in an answer by default.
const LIMIT: usize = 200;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/core/logs/", ADMIN, "Returns the newest lines of the log.", list)]
}

async fn list(call: Call, query: LogQuery) -> Result<LogView, Refusal> {
    let least = query.level.map_or(Level::TRACE, |it| it.0.level());
    let is_wanted = |line: &LogLine| {
        line.level <= least
            && query.target.as_ref().is_none_or(|it| line.target.starts_with(it.as_str()))
            && query.search.as_ref().is_none_or(|it| it.matches(&line.text))
            && query.after.is_none_or(|it| line.id > it)
    };
    let log = call.rest().operation.recent_log.get();
    let lines = log.map(|it| it.newest(query.limit.unwrap_or(LIMIT), is_wanted)).unwrap_or_default();
    let lines: Vec<_> = lines.iter().map(|it| view(it)).collect();
    Ok(LogView { count: lines.len(), lines })
}

fn view(line: &LogLine) -> LogLineView {
    LogLineView {
        id: line.id,
        timestamp: Time(line.at),
        level: Named(LogLineLevel::new(line.level)),
        target: line.target.to_owned(),
        message: line.text.clone(),
    }
}

impl LogLineLevel {
    const ALL: [(Self, Level); 5] = [
        (Self::Error, Level::ERROR),
        (Self::Warn, Level::WARN),
        (Self::Info, Level::INFO),
        (Self::Debug, Level::DEBUG),
        (Self::Trace, Level::TRACE),
    ];

    fn level(self) -> Level {
        Self::ALL.into_iter().find(|it| it.0 == self).map_or(Level::TRACE, |it| it.1)
    }

    fn new(level: Level) -> Self {
        Self::ALL.into_iter().find(|it| it.1 == level).map_or(Self::Trace, |it| it.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use services::recent_log::{RecentLog, RecentLogLayer};
    use tracing::{error, info, warn};
    use tracing_subscriber::layer::SubscriberExt;

    use crate::testing::Rest;

    const PATH: &str = "/api/core/logs/";

    #[tokio::test]
    async fn admins_read_the_newest_lines_by_level_module_and_text() {
        let rest = Rest::start().await;
        assert_eq!(rest.admin("GET", PATH, Value::Null).await.body, json!({ "lines": [], "count": 0 }));
        let log = RecentLog::default();
        let layer = RecentLogLayer { log: log.clone(), is_collected: |_, _| true };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            info!(target: "actors::channel", channel = "News", "channel started");
            warn!(target: "storage", "the disk is slow");
            error!(target: "actors::slots", "no slot");
        });
        rest.show_log(log);
        assert_eq!(rest.standard("GET", PATH, Value::Null).await.status, 403);
        for (query, expected) in [
            ("", vec!["no slot", "the disk is slow", "channel started channel=\"News\""]),
            ("level=warn", vec!["no slot", "the disk is slow"]),
            ("target=actors", vec!["no slot", "channel started channel=\"News\""]),
            ("search=NEWS", vec!["channel started channel=\"News\""]),
            ("after=2", vec!["no slot"]),
            ("limit=1", vec!["no slot"]),
        ] {
            let answer = rest.admin("GET", &format!("{PATH}?{query}"), Value::Null).await.body;
            let lines = answer["lines"].as_array().unwrap();
            let texts: Vec<_> = lines.iter().filter_map(|it| it["message"].as_str()).collect();
            assert_eq!(texts, expected, "{query}");
        }
        for query in ["level=loud", "limit=0", "limit=2001", "after=x"] {
            assert_eq!(
                rest.admin("GET", &format!("{PATH}?{query}"), Value::Null).await.status,
                400,
                "{query}"
            );
        }
    }
}
