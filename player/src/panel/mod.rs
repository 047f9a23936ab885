//! `/player_api.php` and `/panel_api.php`: the requests of player apps, answered as an Xtream Codes panel does.
//!
//! Apps are strict about types: numbers that panels send as texts are texts here, and no list or object is `null`. Every
//! action answers JSON; unknown ones answer the account, because apps send actions of other panels and expect that.

mod account;
mod guide;
mod live;
mod title_info;
mod titles;

use bytes::Bytes;
use domain::vod::TitleKind;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Method, StatusCode};
use resource_derive::Query;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::{Answer, AnswerShape, Document, MediaTypes, Route, json_reply};
use serde_json::Value;
use server::reply::{Refusal, declare_json};
use warp::Reply as _;
use warp::reply::Response as Reply;

use self::account::AccountView;
pub(crate) use self::titles::{TitleCommits, TitleTables};
use super::other_nodes;
use crate::context::PlayerCall;

/// Maximum length of a parameter, in characters.
const PARAMETER_CHARS_MAX: usize = 300;

/// The actions about films and series, which edge nodes do not have.
const OF_TITLES: [&str; 6] = [
    "get_vod_categories",
    "get_vod_streams",
    "get_vod_info",
    "get_series_categories",
    "get_series",
    "get_series_info",
];

/// The request of an app. Parameters of actions that have none are ignored.
#[derive(Debug, Query)]
struct PanelRequest {
    /// `get_live_categories`, `get_live_streams`, `get_vod_categories`, `get_vod_streams`, `get_vod_info`,
    /// `get_series_categories`, `get_series`, `get_series_info`, `get_short_epg` or `get_simple_data_table`. The account is
    /// the answer to all others.
    #[field(chars_max = PARAMETER_CHARS_MAX, example = "get_live_streams")]
    action: Option<String>,
    /// Id of a category, for lists of streams; all by default.
    #[field(chars_max = PARAMETER_CHARS_MAX, example = "1")]
    category_id: Option<String>,
    /// Id of a channel, for its guide.
    #[field(chars_max = PARAMETER_CHARS_MAX, example = "7")]
    stream_id: Option<String>,
    /// Id of a film.
    #[field(chars_max = PARAMETER_CHARS_MAX)]
    vod_id: Option<String>,
    /// Id of a series.
    #[field(chars_max = PARAMETER_CHARS_MAX)]
    series_id: Option<String>,
    /// Maximum number of programmes.
    #[field(chars_max = PARAMETER_CHARS_MAX, example = "4")]
    limit: Option<String>,
}

pub(super) fn routes() -> Vec<Route> {
    let methods = || [Method::GET, Method::POST];
    let player_api = Route::each(
        methods(),
        "/player_api.php",
        Access::QueryLogin,
        "Returns the account, or the list of the action, to a player app.",
        answer_action,
    );
    let everything = Route::each(
        methods(),
        "/panel_api.php",
        Access::QueryLogin,
        "Returns the account with all categories and channels to a player app.",
        everything,
    );
    let current = "The client has the current list.";
    let player_api = player_api.into_iter().map(|it| it.refuses(StatusCode::NOT_MODIFIED, current));
    let unknown = "The film or the series does not exist.";
    let player_api = player_api.map(|it| it.refuses(StatusCode::NOT_FOUND, unknown));
    player_api.chain(everything).map(|it| it.that_reads().for_any_origin()).collect()
}

/// JSON in the form that apps expect.
struct PanelJson;

impl MediaTypes for PanelJson {
    const NAMES: &'static [&'static str] = &["application/json"];
}

/// 200 with JSON, or 304 if the client has the list.
enum PanelAnswer {
    List(Document<PanelJson>),
    /// A list of titles or of their categories, which may be sent while it is written.
    Titles(Reply),
    /// An answer that no cache may keep, because it depends on the moment.
    Moment(Reply),
}

impl PanelAnswer {
    fn from_value(value: &Value) -> Self {
        Self::moment(json_reply(StatusCode::OK, value))
    }

    fn moment(mut reply: Reply) -> Self {
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Self::Moment(reply)
    }
}

impl Answer for PanelAnswer {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::OneOf(PanelJson::NAMES);

    fn into_reply(self) -> Reply {
        match self {
            Self::List(document) => document.into_reply(),
            Self::Titles(reply) | Self::Moment(reply) => reply,
        }
    }
}

async fn answer_action(call: Call, request: PanelRequest) -> Result<PanelAnswer, Refusal> {
    let action = request.action.as_deref().unwrap_or_default();
    if OF_TITLES.contains(&action) && other_nodes::is_edge(call.player()) {
        return other_nodes::pass(&call).await.map(PanelAnswer::Titles);
    }
    let value = match action {
        "get_live_categories" => return live::categories(&call).await,
        "get_live_streams" => return live::streams(&call, request.category_id.as_deref()).await,
        "get_vod_categories" => return titles::categories(&call, TitleKind::Movie).await,
        "get_vod_streams" => {
            return titles::titles(&call, TitleKind::Movie, request.category_id.as_deref()).await;
        }
        "get_series_categories" => return titles::categories(&call, TitleKind::Series).await,
        "get_series" => {
            return titles::titles(&call, TitleKind::Series, request.category_id.as_deref()).await;
        }
        "get_vod_info" => title_info::film(&call, request.vod_id.as_deref()).await?,
        "get_series_info" => title_info::series(&call, request.series_id.as_deref()).await?,
        "get_short_epg" => {
            guide::short(&call, request.stream_id.as_deref(), request.limit.as_deref()).await?
        }
        "get_simple_data_table" => guide::table(&call, request.stream_id.as_deref()).await?,
        _ => AccountView::new(&call)?.to_json(),
    };
    Ok(PanelAnswer::from_value(&value))
}

/// Answers the account and all channels, of which the largest part is prepared.
async fn everything(call: Call) -> Result<PanelAnswer, Refusal> {
    if other_nodes::is_edge(call.player()) {
        return other_nodes::pass(&call).await.map(PanelAnswer::Titles);
    }
    let [films, series] = titles::all_categories(&call).await?;
    let channels = live::all(&call).await?;
    let account = AccountView::new(&call)?.to_json().to_string();
    let start = account.strip_suffix('}').ok_or_else(Refusal::bug)?.to_owned();
    let parts = [
        Bytes::from(start + r#","categories":{"movie":"#),
        films,
        Bytes::from_static(br#","series":"#),
        series,
        Bytes::from_static(b","),
        channels,
        Bytes::from_static(b"}"),
    ];
    let parts = futures_util::stream::iter(parts.map(Ok::<_, std::io::Error>));
    let mut reply = warp::reply::stream(parts).into_response();
    declare_json(reply.headers_mut());
    Ok(PanelAnswer::moment(reply))
}
