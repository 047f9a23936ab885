//! `/api/channels/guide-aliases/`: names that admins linked with guide channels, so that matching finds them.

use domain::guide::matching::GuideAlias;
use domain::ids::GuideSourceId;
use resource_derive::{Query, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{NoContent, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;

use crate::context::RestCall;
use crate::list::{Page, Search, WholeOrPages, matches};
use crate::record::{RecordCall, Render};

/// A learned name of a guide channel.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "GuideAlias")]
pub(crate) struct GuideAliasView {
    /// Assigned by the gateway and never reused.
    #[field(example = "7")]
    id: u32,
    /// Name of the channel that an admin linked. Names that differ in spelling only are found, too.
    #[field(example = "UK: Dave FHD")]
    channel_name: String,
    /// Guide id of that channel. Channels with another guide id that a guide has get that guide channel.
    #[field(example = "dave.uk")]
    channel_tvg_id: Option<String>,
    /// Id of the guide source.
    #[field(example = "1")]
    epg_source: GuideSourceId,
    /// Key of the guide channel.
    #[field(example = "udave.uk")]
    tvg_id: String,
    /// When the link was made.
    learned_at: Time,
}

/// Filters of the list of learned names.
#[derive(Debug, Query)]
struct Filters {
    /// Part of the name or of the key of the guide channel, regardless of case.
    search: Option<Search>,
    /// Id of the guide source.
    epg_source: Option<GuideSourceId>,
}

const LIST: &str = "/api/channels/guide-aliases/";
const ONE: &str = "/api/channels/guide-aliases/{id}/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, ADMIN, "Lists learned names of guide channels.", list),
        Route::get(ONE, ADMIN, "Returns a learned name of a guide channel.", retrieve),
        Route::delete(ONE, ADMIN, "Deletes a learned name. Links of channels stay.", delete),
    ]
}

impl Render for GuideAlias {
    type View = GuideAliasView;
    type Lookup = ();

    fn view(&self, (): &()) -> GuideAliasView {
        GuideAliasView {
            id: self.id,
            channel_name: self.channel_name.clone(),
            channel_tvg_id: self.tvg_id.clone(),
            epg_source: self.source,
            tvg_id: self.key.clone(),
            learned_at: Time(self.learned_at),
        }
    }
}

async fn list(
    call: Call,
    (filters, paging): (Filters, WholeOrPages),
) -> Result<Page<GuideAliasView>, Refusal> {
    let aliases = call.rest().models.guide_aliases.load();
    let is_wanted = |it: &GuideAlias| {
        matches(filters.search.as_ref(), [&it.channel_name, &it.key])
            && filters.epg_source.is_none_or(|source| it.source == source)
    };
    let found: Vec<_> = aliases.iter().filter(|it| is_wanted(it)).collect();
    paging.render(&call, &found)
}

async fn retrieve(call: Call) -> Result<GuideAliasView, Refusal> {
    let alias = call.rest().models.guide_aliases.load().get(call.id()?).cloned();
    call.render(&*alias.ok_or_else(Refusal::unknown::<GuideAlias>)?)
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    call.delete(|_, _: &GuideAlias| Ok(())).await
}
