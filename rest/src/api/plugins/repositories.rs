//! `/api/plugins/repos/`: repositories of plugins, and installing from them.

use std::sync::Arc;

use domain::plugin::repository::{OfferedVersion, PluginRepository, RepositorySignature};
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use services::plugins::repositories::{CheckedArchive, Offer, Repositories, RepositoryError};
use storage::plugin_files::ArchiveError;
use tracing::warn;

use super::install::{ImportedPluginView, archive_refusal, install_staged};
use super::records::{blocking, installed};
use super::refusals::{NOT_FOR_PLUGINS, refused as refused_import};
use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};

choice!(RepositorySignature {
    Verified = "verified",
    NotChecked = "not_checked",
    NotSigned = "not_signed",
});

/// A repository to add.
#[derive(Clone, Debug, Body)]
#[resource(name = "PluginRepoCreate")]
pub(crate) struct NewRepository {
    /// Address of its manifest.
    #[field(example = "https://example.com/plugins/manifest.json")]
    url: String,
    /// Armored OpenPGP key, which you trust. With one, only manifests that are signed with it are accepted.
    #[field(blank)]
    public_key: Option<String>,
}

/// A repository of plugins. Its texts are written by strangers: show them as text.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "PluginRepo")]
pub(crate) struct RepositoryView {
    /// Id of the repository.
    #[field(example = "1")]
    id: u32,
    /// Name as the repository states it.
    #[field(example = "Example/Plugins")]
    name: String,
    /// Address of its manifest.
    #[field(example = "https://example.com/plugins/manifest.json")]
    url: String,
    /// The key that was accepted; empty if none was.
    public_key: String,
    /// Whether the signature is that of the accepted key, was not checked for lack of a key, or is missing.
    signature: Named<RepositorySignature>,
    /// Whether the signature is that of the accepted key; `null` if none was accepted.
    signature_verified: Option<bool>,
    /// Number of plugins in its list; `null` until it was fetched since the start of the gateway.
    plugin_count: Option<usize>,
    /// Entries of its list that are left out, each with the reason.
    faults: Vec<String>,
    /// When its list was fetched last.
    last_fetched: Option<Time>,
    /// Why the last fetch failed; empty if it did not.
    error: String,
    /// When the repository was added.
    created_at: Time,
}

/// A plugin that a repository offers. Its texts are written by strangers: show them as text.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct OfferedPluginView {
    /// Id of the repository.
    repo_id: u32,
    /// Name of the repository.
    repo_name: String,
    /// Identifier in the repository.
    #[field(example = "my-plugin")]
    slug: String,
    /// Name of the plugin.
    #[field(example = "My Plugin")]
    name: String,
    /// Purpose of the plugin.
    description: String,
    /// Author of the plugin.
    author: String,
    /// License of the plugin.
    license: String,
    /// Whether the repository advises against it.
    deprecated: bool,
    /// Latest version; empty if the list states none.
    #[field(example = "1.2.0")]
    latest_version: String,
    /// Whether the list that names it is signed with an accepted key.
    is_signed: bool,
    /// Key of the installed plugin that came from it; `null` if there is none.
    installed_key: Option<String>,
    /// Its version.
    installed_version: Option<String>,
    /// Whether the repository has another version than the installed one as the latest.
    update_available: bool,
}

/// The plugins of all repositories.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct AvailablePluginsView {
    /// In the order of the repositories.
    plugins: Vec<OfferedPluginView>,
}

/// Names a plugin of a repository.
#[derive(Clone, Debug, Body)]
#[resource(name = "PluginOfRepo")]
pub(crate) struct OfferName {
    /// Id of the repository.
    repo_id: u32,
    /// Identifier of the plugin in the repository.
    #[field(example = "my-plugin")]
    slug: String,
}

/// Names a version of a plugin of a repository.
#[derive(Clone, Debug, Body)]
#[resource(name = "PluginInstallFromRepo")]
pub(crate) struct VersionName {
    /// Id of the repository.
    repo_id: u32,
    /// Identifier of the plugin in the repository.
    #[field(example = "my-plugin")]
    slug: String,
    /// Version to install; the latest one by default.
    #[field(example = "1.2.0")]
    version: Option<Option<String>>,
    /// Whether an installed plugin with the same key that came from elsewhere is replaced. It keeps its settings and files.
    overwrite: Option<bool>,
}

/// A version of a plugin that can be installed.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PluginVersionView {
    /// The version.
    #[field(example = "1.2.0")]
    version: String,
    /// SHA-256 checksum of the archive.
    sha256: String,
    /// When it was released, as the repository states it.
    released_at: String,
    /// Whether it is meant for tests.
    prerelease: bool,
    /// Lowest version of Dispatcharr that it states; empty if it states none.
    min_dispatcharr_version: String,
}

/// The versions of a plugin.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PluginVersionsView {
    /// The latest one first.
    versions: Vec<PluginVersionView>,
}

const LIST: &str = "/api/plugins/repos/";
const ONE: &str = "/api/plugins/repos/{id}/";
const REFRESH: &str = "/api/plugins/repos/{id}/refresh/";
const AVAILABLE: &str = "/api/plugins/repos/available/";
const DETAIL: &str = "/api/plugins/repos/plugin-detail/";
const INSTALL: &str = "/api/plugins/repos/install/";

pub(super) fn routes() -> Vec<Route> {
    const UNKNOWN: &str = "There is no such repository, plugin or version.";
    const FETCH: &str = "The repository does not answer, or its answer is refused. Nothing was changed.";
    const ADD: &str = "Adds a repository of plugins whose list can be read.";
    const GET_NEW: &str =
        "Adds or updates a plugin from a repository, after its checksum. Runs no code of it.";
    const VERSIONS: &str = "Lists the versions of a plugin of a repository.";
    let fetching = |route: Route| {
        route
            .not_for_plugins(NOT_FOR_PLUGINS)
            .refuses(StatusCode::BAD_GATEWAY, FETCH)
            .refuses(StatusCode::NOT_FOUND, UNKNOWN)
    };
    vec![
        Route::get(LIST, ADMIN, "Lists the repositories of plugins.", list),
        Route::post(LIST, ADMIN, ADD, add)
            .not_for_plugins(NOT_FOR_PLUGINS)
            .refuses(StatusCode::BAD_REQUEST, "The address or the key is wrong, or it exists already.")
            .refuses(StatusCode::BAD_GATEWAY, FETCH),
        Route::delete(ONE, ADMIN, "Removes a repository of plugins. Its plugins stay.", remove)
            .not_for_plugins(NOT_FOR_PLUGINS)
            .refuses(StatusCode::NOT_FOUND, UNKNOWN),
        fetching(Route::post(REFRESH, ADMIN, "Updates the list of a repository from its address.", refresh)),
        Route::get(AVAILABLE, ADMIN, "Lists the plugins of all repositories.", available),
        fetching(Route::post(DETAIL, ADMIN, VERSIONS, versions).that_reads()),
        fetching(Route::post(INSTALL, ADMIN, GET_NEW, install))
            .refuses(StatusCode::BAD_REQUEST, "The archive is refused. Nothing was changed."),
    ]
}

fn repositories(call: &Call) -> &Repositories {
    &call.rest().plugins.repositories
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<RepositoryView>, Refusal> {
    let stored = repositories(&call).stored();
    paging.page_from(&call, stored.repositories.into_iter().map(|it| view(&call, it)).collect())
}

async fn add(call: Call, body: NewRepository) -> Result<Created<RepositoryView>, Refusal> {
    let key = body.public_key.unwrap_or_default();
    let added = repositories(&call).add(&body.url, &key).await.map_err(refused)?;
    Ok(Created(view(&call, added)))
}

async fn remove(call: Call) -> Result<NoContent, Refusal> {
    repositories(&call).remove(call.id()?).await.map_err(refused)?;
    Ok(NoContent)
}

async fn refresh(call: Call) -> Result<RepositoryView, Refusal> {
    let refreshed = repositories(&call).refresh(call.id()?).await.map_err(refused)?;
    Ok(view(&call, refreshed))
}

async fn available(call: Call) -> Result<AvailablePluginsView, Refusal> {
    let offers = repositories(&call).offers().await;
    Ok(AvailablePluginsView { plugins: offers.into_iter().map(|it| offer_view(&call, it)).collect() })
}

async fn versions(call: Call, body: OfferName) -> Result<PluginVersionsView, Refusal> {
    let versions = repositories(&call).versions(body.repo_id, &body.slug).await.map_err(refused)?;
    Ok(PluginVersionsView { versions: versions.into_iter().map(version_view).collect() })
}

/// Installs a version. Settings and files of an installed plugin stay.
async fn install(call: Call, body: VersionName) -> Result<ImportedPluginView, Refusal> {
    let VersionName { repo_id, slug, version, overwrite } = body;
    let version = version.flatten();
    let archive = repositories(&call).archive(repo_id, &slug, version.as_deref()).await.map_err(refused)?;
    let _one = installed(&call).changes.lock().await;
    let context = Arc::clone(call.rest());
    let staged = blocking(move || {
        let CheckedArchive { file, name } = archive;
        context.plugins.installed.files.stage(file, &name)
    });
    let staged = staged.await?.map_err(|error: ArchiveError| archive_refusal(&error))?;
    let key = staged.key.clone();
    let origin = repositories(&call).stored().installed.get(&key).cloned();
    let is_other = origin.is_none_or(|it| (it.repository, &*it.slug) != (repo_id, &*slug));
    let is_known = installed(&call).files.exists(&key);
    if is_known && is_other && overwrite != Some(true) {
        // The page of plugins asks about this sentence.
        return Err(refused_import(&format!("Plugin '{key}' already exists")));
    }
    let view = install_staged(&call, staged).await?;
    if let Err(error) = repositories(&call).note_installed(key, repo_id, &slug).await {
        warn!("failed to note the repository of an installed plugin; it is updated by hand: {error}");
    }
    Ok(view)
}

fn refused(error: RepositoryError) -> Refusal {
    let text = error.to_string();
    match error {
        RepositoryError::Unknown | RepositoryError::NoPlugin(_) | RepositoryError::NoVersion(_) => {
            Refusal::not_found(text)
        }
        RepositoryError::Address | RepositoryError::Exists | RepositoryError::TooMany => {
            Refusal::field("url", text)
        }
        RepositoryError::Key(_) => Refusal::field("public_key", text),
        RepositoryError::Io(_) => Refusal::fault(format_args!("store the archive of a plugin: {text}")),
        RepositoryError::Store(error) => error.into(),
        RepositoryError::Fetch(_)
        | RepositoryError::Manifest(_)
        | RepositoryError::NotSigned
        | RepositoryError::WrongSignature
        | RepositoryError::WrongChecksum => Refusal::status(StatusCode::BAD_GATEWAY).with_detail(text),
    }
}

fn view(call: &Call, it: PluginRepository) -> RepositoryView {
    let (plugin_count, faults) = repositories(call).listed(it.id).unzip();
    RepositoryView {
        id: it.id,
        name: it.name,
        url: it.url,
        signature_verified: (!it.public_key.is_empty())
            .then_some(it.signature == RepositorySignature::Verified),
        public_key: it.public_key,
        signature: Named(it.signature),
        plugin_count,
        faults: faults.unwrap_or_default(),
        last_fetched: it.fetched_at.map(Time),
        error: it.error,
        created_at: Time(it.created_at),
    }
}

fn offer_view(call: &Call, offer: Offer) -> OfferedPluginView {
    let Offer { repository, plugin, installed } = offer;
    let plugins = call.rest().models.plugins.load();
    let record = installed.as_ref().and_then(|it| plugins.one_by("key", it.as_str()));
    let installed_version = record.map(|it| it.version.clone());
    let latest_version = plugin.latest.map(|it| it.version).unwrap_or_default();
    let is_other = installed_version.as_ref().is_some_and(|it| *it != latest_version);
    OfferedPluginView {
        repo_id: repository.id,
        repo_name: repository.name,
        slug: plugin.slug,
        name: plugin.name,
        description: plugin.description,
        author: plugin.author,
        license: plugin.license,
        deprecated: plugin.is_deprecated,
        update_available: is_other && !latest_version.is_empty(),
        latest_version,
        is_signed: repository.signature == RepositorySignature::Verified,
        installed_key: record.map(|it| it.key.to_string()),
        installed_version,
    }
}

fn version_view(it: OfferedVersion) -> PluginVersionView {
    PluginVersionView {
        version: it.version,
        sha256: it.sha256,
        released_at: it.released_at,
        prerelease: it.is_prerelease,
        min_dispatcharr_version: it.min_version,
    }
}
