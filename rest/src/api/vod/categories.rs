//! `/api/vod/categories/`: categories of films and series, and which of them accounts import.

use std::collections::BTreeSet;

use domain::group::Group;
use domain::ids::{AccountId, VodCategoryId};
use domain::vod::category::CATEGORY_NAME_CHARS_MAX;
use domain::vod::{AccountCategory, TitleKind, VodCategory};
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::{ADMIN, STREAMER};
use route_frame::call::Call;
use route_frame::route::{Created, Route};
use serde::Serialize;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;
use storage::records::{category_key, category_link_key};

use crate::choice::Named;
use crate::context::RestCall;
use crate::list::{ByName, Ordering, Page, Search, WholeOrPages, matches};

/// A category of films or of series.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "VODCategory")]
pub(crate) struct CategoryView {
    /// Id of the category, which no channel group has.
    #[field(example = "4")]
    id: VodCategoryId,
    /// Name of the category.
    #[field(example = "Drama")]
    name: String,
    /// Kind of its titles.
    category_type: Named<TitleKind>,
    /// Name of the kind for people.
    #[field(example = "Movie")]
    category_type_display: &'static str,
    /// The accounts that list the category. Users other than admins see those that import it.
    m3u_accounts: Vec<CategoryLinkView>,
}

/// An account that lists a category.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "M3UVODCategoryRelation")]
pub(crate) struct CategoryLinkView {
    /// Id of the category.
    category: VodCategoryId,
    /// Id of the account.
    m3u_account: AccountId,
    /// Whether the account imports the titles of the category.
    enabled: bool,
}

/// Filters of the list of categories.
#[derive(Debug, Query)]
struct CategoryFilters {
    /// Part of the name, regardless of case.
    #[field(chars_max = 255)]
    name: Option<Search>,
    /// Kind of the titles.
    category_type: Option<Named<TitleKind>>,
    /// Id of a playlist account that lists the category.
    m3u_account: Option<AccountId>,
    /// Whether an account imports the category.
    enabled: Option<bool>,
    /// Part of the name, regardless of case.
    #[field(chars_max = 255)]
    search: Option<Search>,
    /// Order of the list; by name by default.
    ordering: Option<Ordering<ByName>>,
}

/// Maximum number of categories of one request.
const MANY: usize = 10_000;

/// New categories.
#[derive(Clone, Debug, Body)]
#[resource(name = "NewVODCategories")]
pub(crate) struct NewCategories {
    /// Names of the categories.
    #[field(items_max = MANY, chars_max = CATEGORY_NAME_CHARS_MAX, example = "[\"Drama\"]")]
    names: Vec<String>,
    /// Kind of their titles.
    category_type: Named<TitleKind>,
    /// Whether categories that exist are left as they are. Otherwise they are an error.
    ignore_conflicts: Option<bool>,
}

/// Result of a creation.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "VODCategoriesCreated")]
pub(crate) struct CategoriesCreatedView {
    /// Message for people.
    #[field(example = "Created 2 categories")]
    message: String,
    /// Number of created categories.
    created_count: usize,
    /// Ids of the categories of the request, in order, those that existed included.
    ids: Vec<VodCategoryId>,
}

/// Enables or disables categories.
#[derive(Clone, Debug, Body)]
#[resource(name = "VODCategoriesEnable")]
pub(crate) struct EnableCategories {
    /// Ids of the categories; all of the account by default.
    #[field(items_max = MANY, example = "[4]")]
    ids: Option<Vec<VodCategoryId>>,
    /// Id of a playlist account; all accounts that list the categories by default.
    m3u_account: Option<AccountId>,
    /// Kind of the titles; both by default.
    category_type: Option<Named<TitleKind>>,
    /// Whether the titles are imported, listed and played.
    enabled: bool,
}

/// Result of enabling or disabling categories.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "VODCategoriesEnabled")]
pub(crate) struct CategoriesEnabledView {
    /// Message for people.
    #[field(example = "Enabled 2 categories. The next refresh imports their titles.")]
    message: String,
    /// Number of links of accounts and categories that changed.
    updated_count: usize,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/vod/categories/", STREAMER, "Lists categories of films and series.", list),
        Route::get("/api/vod/categories/{id}/", STREAMER, "Returns a category of films or series.", retrieve),
        Route::post(
            "/api/vod/categories/bulk-create/",
            ADMIN,
            "Creates categories of films or series.",
            create,
        )
        .with_bulk_body(),
        Route::post(
            "/api/vod/categories/bulk-enable/",
            ADMIN,
            "Changes which categories of films and series accounts import.",
            enable,
        )
        .with_bulk_body()
        .refuses(StatusCode::NOT_FOUND, "The account does not exist."),
    ]
}

/// Returns the categories with a title that the caller may see; for admins all.
async fn visible(call: &Call) -> Result<Option<BTreeSet<VodCategoryId>>, Refusal> {
    if call.is_admin() {
        return Ok(None);
    }
    let (index, seen) = (call.rest().imports.titles.index().await?, call.seen_titles());
    let category_ids = |kind| index.categories(kind, &seen.limits, Some(seen.sources())).into_keys();
    Ok(Some(TitleKind::ALL.into_iter().flat_map(category_ids).collect()))
}

async fn list(
    call: Call,
    (filters, paging): (CategoryFilters, WholeOrPages),
) -> Result<Page<CategoryView>, Refusal> {
    let visible = visible(&call).await?;
    let categories = call.rest().models.vod_categories.load();
    let links = call.rest().models.vod_account_categories.load();
    let is_wanted = |it: &VodCategory| {
        let category_links = || links.by("category", it.id.0.to_be_bytes());
        visible.as_ref().is_none_or(|visible| visible.contains(&it.id))
            && matches(filters.name.as_ref(), [&it.name])
            && matches(filters.search.as_ref(), [&it.name])
            && filters.category_type.is_none_or(|kind| kind.0 == it.kind)
            && filters.m3u_account.is_none_or(|id| category_links().any(|it| it.account == id))
            && filters.enabled.is_none_or(|enabled| enabled == category_links().any(|it| it.enabled))
    };
    let mut found: Vec<_> = categories.iter().filter(|it| is_wanted(it)).collect();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(ByName::Name));
    ordering.sort(&mut found, |it| it.id, |it| &it.name);
    let is_admin = call.is_admin();
    paging.render_with(&call, &found, |it| view(it, &links, is_admin))
}

async fn retrieve(call: Call) -> Result<CategoryView, Refusal> {
    let id = VodCategoryId(call.id()?);
    let visible = visible(&call).await?;
    let categories = call.rest().models.vod_categories.load();
    let found = categories.get(id.0).filter(|it| visible.is_none_or(|visible| visible.contains(&it.id)));
    let found = found.ok_or_else(|| Refusal::not_found("No VODCategory matches the given query."))?;
    Ok(view(found, &call.rest().models.vod_account_categories.load(), call.is_admin()))
}

fn view(category: &VodCategory, links: &storage::Table<AccountCategory>, is_admin: bool) -> CategoryView {
    let links = links.by("category", category.id.0.to_be_bytes()).filter(|it| is_admin || it.enabled);
    CategoryView {
        id: category.id,
        name: category.name.clone(),
        category_type: Named(category.kind),
        category_type_display: match category.kind {
            TitleKind::Movie => "Movie",
            TitleKind::Series => "Series",
        },
        m3u_accounts: links
            .map(|it| CategoryLinkView {
                category: it.category,
                m3u_account: it.account,
                enabled: it.enabled,
            })
            .collect(),
    }
}

async fn create(call: Call, new: NewCategories) -> Result<Created<CategoriesCreatedView>, Refusal> {
    let ignores = new.ignore_conflicts.unwrap_or(false);
    call.write(move |write| {
        let (mut ids, mut created_count, mut errors) = (Vec::new(), 0, FieldErrors::default());
        for (n, name) in new.names.into_iter().enumerate() {
            match find(write, new.category_type.0, &name)? {
                Some(id) if ignores || ids.contains(&id) => ids.push(id),
                Some(_) => errors.add("names", format!("Item {}: This category exists already.", n + 1)),
                None => {
                    let id = VodCategoryId(write.next_id::<Group>()?);
                    write.put(&VodCategory { id, name, kind: new.category_type.0 })?;
                    ids.push(id);
                    created_count += 1;
                }
            }
        }
        errors.or(())?;
        let message = format!("Created {created_count} categories");
        Ok(Created(CategoriesCreatedView { message, created_count, ids }))
    })
    .await
}

fn find(write: &Write<'_>, kind: TitleKind, name: &str) -> Result<Option<VodCategoryId>, Refusal> {
    let found = write.by::<VodCategory>("name", category_key(kind, name))?;
    Ok(found.first().map(|it| it.id))
}

async fn enable(call: Call, body: EnableCategories) -> Result<CategoriesEnabledView, Refusal> {
    if body.ids.is_none() && body.m3u_account.is_none() {
        return Err(FieldErrors::required("ids").into());
    }
    if let Some(account) = body.m3u_account
        && call.rest().models.accounts.load().get(account.0).is_none()
    {
        return Err(Refusal::unknown::<domain::account::Account>());
    }
    let updated_count = call
        .write(move |write| {
            let links = match (body.m3u_account, &body.ids) {
                (Some(account), Some(ids)) => {
                    let mut links = Vec::new();
                    for id in ids {
                        links.extend(write.by::<AccountCategory>("link", category_link_key(account, *id))?);
                    }
                    links
                }
                (Some(account), None) => write.by::<AccountCategory>("account", account.0.to_be_bytes())?,
                (None, ids) => {
                    let mut links = Vec::new();
                    for id in ids.iter().flatten() {
                        links.extend(write.by::<AccountCategory>("category", id.0.to_be_bytes())?);
                    }
                    links
                }
            };
            let is_wanted = |it: &AccountCategory| {
                it.enabled != body.enabled && body.category_type.is_none_or(|kind| kind.0 == it.kind)
            };
            let mut n_updated = 0;
            for link in links.into_iter().filter(is_wanted) {
                write.put(&AccountCategory { enabled: body.enabled, ..link })?;
                n_updated += 1;
            }
            Ok::<_, Refusal>(n_updated)
        })
        .await?;
    let message = match body.enabled {
        true => format!("Enabled {updated_count} categories. The next refresh imports their titles."),
        false => {
            format!("Disabled {updated_count} categories. Their titles are neither listed nor played.")
        }
    };
    Ok(CategoriesEnabledView { message, updated_count })
}
