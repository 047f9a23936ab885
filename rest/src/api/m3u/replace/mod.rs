//! `/api/m3u/accounts/{id}/replace-with/`: moves the channels that play streams of one account to another account.
//!
//! ```text
//!   streams of both accounts ── comparison::find ──▶ Comparison ─┬─ view::view ──────────▶ the answer
//!                                                                └─ carry_out::carry_out ─▶ commits with one undo
//! ```

mod carry_out;
mod comparison;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

use actors::now_ms;
use domain::account::Account;
use domain::event::{Event, EventBody, RefreshRef};
use domain::ids::{AccountId, StreamId};
use domain::stream_identity::PAIR_POINTS_MIN;
use http::StatusCode;
use resource_derive::Body;
use route_frame::access::ADMIN;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::Route;
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use self::carry_out::{Done, carry_out};
use self::comparison::{CompareOptions, Comparison, find};
use self::view::{ReplacementView, Rows, view};
use crate::api::channels::undo::Author;
use crate::context::RestCall;

/// Maximum number of streams that a request leaves out.
const EXCEPT_MAX: usize = 10_000;
/// Maximum number of pairs, and of streams without a pair, in an answer.
const LISTED_MAX: usize = 1_000;
/// Their number by default.
const LISTED: usize = 200;

const REPLACE: &str = "/api/m3u/accounts/{id}/replace-with/";

/// The account whose streams take the places of others.
#[derive(Clone, Debug, Body)]
pub(crate) struct ReplaceWith {
    /// Id of the other account, which was imported already.
    #[field(example = "3")]
    account: Option<AccountId>,
    /// If true, nothing is changed, and the answer shows what would change.
    #[field(aliases = &["dry_run"])]
    preview: Option<bool>,
    /// The least score of a pair, in percent; 85 by default.
    #[field(at_least = 85, at_most = 100, example = "85")]
    min_score: Option<u32>,
    /// Ids of streams of this account that stay as they are.
    #[field(items_max = EXCEPT_MAX, example = "[7]")]
    except: Option<Vec<StreamId>>,
    /// Number of rows that the lists of the answer leave out at their beginning.
    #[field(example = "0")]
    offset: Option<u32>,
    /// Maximum number of rows in each list of the answer; 200 by default.
    #[field(at_least = 0, at_most = LISTED_MAX as i64, example = "200")]
    limit: Option<u32>,
}

pub(super) fn routes() -> Vec<Route> {
    let summary = "Replaces the streams of an account in all channels by those of another account.";
    vec![
        Route::post(REPLACE, ADMIN, summary, replace)
            .refuses(StatusCode::BAD_REQUEST, "The other account cannot take the place of this one.")
            .refuses(StatusCode::SERVICE_UNAVAILABLE, "Two other accounts are being compared."),
    ]
}

async fn replace(call: Call, body: ReplaceWith) -> Result<ReplacementView, Refusal> {
    let accounts = accounts(&call, body.account)?;
    let author = Author::new(&call)?;
    let wanted = CompareOptions {
        from: accounts.0.id,
        to: accounts.1.id,
        points_min: body.min_score.map_or(PAIR_POINTS_MIN, |it| it.min(100) as u16 * 10),
        except: body.except.into_iter().flatten().collect(),
    };
    let rows = Rows {
        offset: body.offset.unwrap_or(0) as usize,
        limit: body.limit.map_or(LISTED, |it| it as usize).min(LISTED_MAX),
    };
    let found = Arc::new(compare(&call, wanted).await?);
    if body.preview == Some(true) {
        return Ok(view(&found, &would_replace(&found, &accounts), rows, None));
    }
    let done = carry_out(&call, &found, &author, |n| replaced(&found, n, &accounts)).await?;
    if done.n_channels > 0 {
        announce(&call, &accounts, &found, &done);
    }
    Ok(view(&found, &replaced(&found, done.n_channels, &accounts), rows, Some(done)))
}

/// Pairs the streams, which takes seconds and memory for large accounts, so that one request at a time does it.
async fn compare(call: &Call, wanted: CompareOptions) -> Result<Comparison, Refusal> {
    const BUSY: &str = "Two other accounts are being compared; try again when that is done.";
    let turn = Arc::clone(&call.rest().imports.pairing_turn).try_acquire_owned();
    let turn = turn.map_err(|_| Refusal::unavailable(BUSY).retry_soon())?;
    let models = call.rest().models.clone();
    // The work continues to its end if the client leaves.
    run_blocking("pair streams", move || {
        let found = find(&models, wanted);
        drop(turn);
        found
    })
    .await?
}

/// The account, and the one that takes its place.
type Accounts = (Arc<Account>, Arc<Account>);

fn accounts(call: &Call, other: Option<AccountId>) -> Result<Accounts, Refusal> {
    let accounts = call.rest().models.accounts.load();
    let account = accounts.get(call.id()?).cloned().ok_or_else(Refusal::unknown::<Account>)?;
    let id = other.ok_or_else(|| FieldErrors::required("account"))?;
    let Some(other) = accounts.get(id.0).cloned() else {
        return Err(Refusal::field("account", format!("There is no account {id}.")));
    };
    if other.id == account.id {
        return Err(Refusal::field("account", "An account cannot replace itself."));
    }
    if !other.is_active {
        return Err(Refusal::field("account", "The account is not active, so its streams do not play."));
    }
    Ok((account, other))
}

/// Reports a replacement to admins.
fn announce(call: &Call, (account, other): &Accounts, found: &Comparison, done: &Done) {
    let of = |it: &Account| RefreshRef { id: it.id.0, name: it.name.clone() };
    let body = EventBody::AccountReplaced {
        account: of(account),
        other: of(other),
        streams: found.pairs.len() as u64,
        channels: done.n_channels as u64,
        streams_left: found.unpaired.len() as u64,
    };
    call.rest().events.emit(Event { at: now_ms(), body });
}

fn replaced(found: &Comparison, n_channels: usize, (from, to): &Accounts) -> String {
    let (n_pairs, n_left) = (found.pairs.len(), found.unpaired.len());
    format!(
        "Replaced {n_pairs} streams of \"{}\" in {n_channels} channels by streams of \"{}\"; without a pair: {n_left}",
        from.name, to.name
    )
}

fn would_replace(found: &Comparison, (from, to): &Accounts) -> String {
    let (n_pairs, n_left) = (found.pairs.len(), found.unpaired.len());
    format!(
        "{n_pairs} streams of \"{}\" in {} channels would be replaced by streams of \"{}\"; without a pair: {n_left}",
        from.name,
        found.channels.len(),
        to.name
    )
}
