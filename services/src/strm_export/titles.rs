//! The titles of an export, and the addresses in its files.

use std::collections::HashSet;

use anyhow::Result;
use domain::secret::Secret;
use domain::strm::{ExternalIds, StrmEpisode, StrmTitle, StrmTree, StrmVersion, TitleFacts};
use domain::vod::{Episode, Title, TitleDetails, TitleKind};
use storage::Models;

use super::ExportOrder;
use super::files::ExportFiles;
use crate::addresses::{TitleAddresses, backdrop_address, episode_image_address, image_address};
use crate::titles::{Properties, SeenTitles};

/// Puts the files of all titles. Returns the number of files.
pub(super) fn put_titles(
    order: &ExportOrder,
    models: &Models,
    secret: &Secret,
    files: &mut ExportFiles,
) -> Result<usize> {
    let mut export = Export {
        addresses: TitleAddresses::with_login(&order.origin, &order.user, secret),
        origin: &order.origin,
        seen: SeenTitles::new(models, Some(&order.user)),
        tree: StrmTree::new(order.has_nfo),
        files,
        n_files: 0,
        failure: None,
    };
    let (mut series, mut unread) = (Vec::new(), None);
    models.vod.while_each(|title| {
        if export.seen.shows(&title) {
            match title.id.kind() {
                TitleKind::Movie => match models.vod.details_of_title(&title) {
                    Ok(details) => export.put_film(&title, details.as_ref()),
                    Err(error) => unread = Some(error),
                },
                // Their episodes are read when no other title is.
                TitleKind::Series => series.push(title.id),
            }
        }
        export.failure.is_none() && unread.is_none()
    })?;
    if let Some(error) = unread {
        return Err(error.into());
    }
    for id in series {
        if export.failure.is_some() {
            break;
        }
        if let Some(title) = models.vod.get(id)? {
            let episodes = models.vod.episodes_of(id)?;
            let details = models.vod.details_of_title(&title)?;
            export.put_series(&title, details.as_ref(), &episodes);
        }
    }
    match export.failure {
        Some(error) => Err(error.into()),
        None => Ok(export.n_files),
    }
}

struct Export<'a> {
    addresses: TitleAddresses,
    origin: &'a str,
    seen: SeenTitles,
    tree: StrmTree,
    files: &'a mut ExportFiles,
    n_files: usize,
    failure: Option<std::io::Error>,
}

impl Export<'_> {
    fn put_film(&mut self, film: &Title, details: Option<&TitleDetails>) {
        let texts = TitleTexts::new(self.origin, film, details);
        let versions = self.seen.versions(film);
        let is_single = versions.len() == 1;
        let versions: Vec<_> = versions
            .into_iter()
            .map(|it| {
                // The address of a single version is that of the film, so it stays when another account takes over.
                let number = if is_single { film.id.number() } else { it.id.0 };
                StrmVersion {
                    id: it.id.0,
                    label: it.label.as_deref().unwrap_or_default(),
                    address: self.addresses.film(number, &it.extension),
                }
            })
            .collect();
        let put = &mut put_into(self.files, &mut self.n_files, &mut self.failure);
        self.tree.add_film(&strm_title(film, &texts), &versions, put);
    }

    fn put_series(&mut self, series: &Title, details: Option<&TitleDetails>, episodes: &[Episode]) {
        let texts = TitleTexts::new(self.origin, series, details);
        let offered: HashSet<_> = self.seen.versions(series).into_iter().map(|it| it.id).collect();
        let names: Vec<(String, String)> =
            episodes.iter().map(|it| (it.name(), episode_picture(self.origin, it))).collect();
        let episodes: Vec<_> = episodes
            .iter()
            .zip(&names)
            .filter_map(|(it, (name, picture))| {
                let offer = it.offers.iter().find(|it| offered.contains(&it.relation))?;
                let address = self.addresses.episode(it.id.0, &offer.extension);
                Some(strm_episode(it, name, picture, address))
            })
            .collect();
        let put = &mut put_into(self.files, &mut self.n_files, &mut self.failure);
        self.tree.add_series(&strm_title(series, &texts), &episodes, put);
    }
}

/// The facts of a title that are not among its fields.
struct TitleTexts {
    original_name: String,
    date: String,
    directors: String,
    actors: String,
    countries: String,
    trailer: String,
    picture: String,
    fanart: String,
}

impl TitleTexts {
    fn new(origin: &str, title: &Title, details: Option<&TitleDetails>) -> Self {
        let properties = Properties::from_title(title, details);
        let backdrop = properties.backdrops().first().map(|it| backdrop_address(origin, title, 0, it));
        Self {
            original_name: properties.original_name(),
            date: properties.release_date(),
            directors: properties.director(),
            actors: properties.cast(),
            countries: properties.country(),
            trailer: properties.trailer(),
            picture: title.logo().map(|_| image_address(origin, title)).unwrap_or_default(),
            fanart: backdrop.unwrap_or_default(),
        }
    }
}

fn episode_picture(origin: &str, episode: &Episode) -> String {
    let picture = episode.first(|it| it.logo.as_deref());
    picture.map(|it| episode_image_address(origin, episode, it)).unwrap_or_default()
}

/// Returns a function that puts files until one fails.
fn put_into<'a>(
    files: &'a mut ExportFiles,
    n_files: &'a mut usize,
    failure: &'a mut Option<std::io::Error>,
) -> impl FnMut(&str, &str) + 'a {
    move |path, content| {
        if failure.is_none() {
            *failure = files.put(path, content).err();
            *n_files += 1;
        }
    }
}

fn strm_title<'a>(title: &'a Title, texts: &'a TitleTexts) -> StrmTitle<'a> {
    StrmTitle {
        id: title.id.number(),
        name: title.name(),
        year: title.year().map(u32::from),
        ids: ExternalIds { tmdb: title.tmdb_id(), imdb: title.imdb_id() },
        facts: TitleFacts {
            original_name: &texts.original_name,
            plot: title.description().unwrap_or_default(),
            genre: title.genre().unwrap_or_default(),
            rating: title.rating().unwrap_or_default(),
            date: &texts.date,
            duration_secs: title.duration_secs(),
            directors: &texts.directors,
            actors: &texts.actors,
            countries: &texts.countries,
            trailer: &texts.trailer,
            picture: &texts.picture,
            fanart: &texts.fanart,
        },
    }
}

fn strm_episode<'a>(
    episode: &'a Episode,
    name: &'a str,
    picture: &'a str,
    address: String,
) -> StrmEpisode<'a> {
    StrmEpisode {
        name: episode.first(|it| Some(&*it.name).filter(|it| !it.is_empty())).map_or("", |_| name),
        season: episode.season,
        number: episode.number,
        ids: ExternalIds {
            tmdb: episode.first(|it| it.ids.tmdb.as_deref()),
            imdb: episode.first(|it| it.ids.imdb.as_deref()),
        },
        facts: TitleFacts {
            plot: episode.first(|it| it.description.as_deref()).unwrap_or_default(),
            rating: episode.first(|it| it.rating.as_deref()).unwrap_or_default(),
            date: episode.first(|it| it.air_date.as_deref()).unwrap_or_default(),
            duration_secs: episode.first(|it| it.duration_secs),
            picture,
            ..TitleFacts::default()
        },
        versions: vec![StrmVersion { id: episode.id.0, label: "", address }],
    }
}
