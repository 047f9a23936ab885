//! Writes the categories that an account lists.

use std::collections::{HashMap, HashSet};

use domain::account::Account;
use domain::group::Group;
use domain::ids::{AccountId, VodCategoryId};
use domain::vod::category::UNCATEGORISED;
use domain::vod::{AccountCategory, FoundCategory, TitleKind, VodCategory};

use super::VodTitles;
use super::landing::LandError;
use crate::records::vod::{category_key, category_link_key};
use crate::write::Write;

/// Maximum number of categories of one kind that an account may list.
const CATEGORIES_MAX: usize = 5_000;

impl VodTitles {
    /// Writes the categories of one kind that an account lists, and returns all its links of this kind. A category that is
    /// new for the account is enabled if `enables_new`; known ones keep their setting. Blocks.
    ///
    /// # Errors
    /// The list is empty or too long: nothing is changed.
    pub fn land_categories(
        &self,
        account: AccountId,
        kind: TitleKind,
        found: Vec<FoundCategory>,
        enables_new: bool,
        now: i64,
    ) -> Result<Vec<AccountCategory>, LandError> {
        let found: Vec<FoundCategory> = found.into_iter().filter(|it| it.kind == kind).collect();
        if found.is_empty() {
            return Err(LandError::Empty);
        }
        if found.len() > CATEGORIES_MAX {
            return Err(LandError::TooMany { n: found.len(), max: CATEGORIES_MAX });
        }
        self.store.write_blocking(move |write| {
            if write.get::<Account>(account.0)?.is_none() {
                return Err(LandError::AccountGone);
            }
            land(write, account, kind, found, enables_new, now)
        })
    }
}

fn land(
    write: &mut Write<'_>,
    account: AccountId,
    kind: TitleKind,
    found: Vec<FoundCategory>,
    enables_new: bool,
    now: i64,
) -> Result<Vec<AccountCategory>, LandError> {
    let mut links = write.by::<AccountCategory>("account", account.0.to_be_bytes())?;
    links.retain(|it| it.kind == kind);
    // A provider that renames a category keeps its id.
    let enabled_ids: HashMap<String, bool> = links
        .iter()
        .flat_map(|link| link.provider_ids.iter().map(|it| (it.clone(), link.enabled)))
        .filter(|it| !it.0.is_empty())
        .collect();
    let mut listed: HashMap<VodCategoryId, Vec<String>> = HashMap::new();
    let mut order = Vec::new();
    for mut category in found {
        category.limit();
        let name = match category.name.trim() {
            "" => UNCATEGORISED,
            name => name,
        };
        let id = category_id(write, kind, name)?;
        let ids = listed.entry(id).or_insert_with(|| {
            order.push(id);
            Vec::new()
        });
        if !ids.contains(&category.provider_id) {
            ids.push(category.provider_id);
        }
    }
    for category in order {
        let provider_ids = listed.get(&category).cloned().unwrap_or_default();
        let link = match write.by::<AccountCategory>("link", category_link_key(account, category))?.pop() {
            Some(link) => AccountCategory { provider_ids, last_seen: None, ..link },
            None => AccountCategory {
                id: write.next_id::<AccountCategory>()?,
                account,
                category,
                kind,
                enabled: provider_ids
                    .iter()
                    .find_map(|it| enabled_ids.get(it).copied())
                    .unwrap_or(enables_new),
                provider_ids,
                custom_properties: Default::default(),
                last_seen: None,
            },
        };
        write.put(&link)?;
    }
    let listed: HashSet<VodCategoryId> = listed.into_keys().collect();
    for mut link in links.into_iter().filter(|it| !listed.contains(&it.category) && it.last_seen.is_none()) {
        link.last_seen = Some(now);
        write.put(&link)?;
    }
    let mut links = write.by::<AccountCategory>("account", account.0.to_be_bytes())?;
    links.retain(|it| it.kind == kind);
    Ok(links)
}

/// Returns the category with this name, a new one if necessary.
pub fn category_id(write: &mut Write<'_>, kind: TitleKind, name: &str) -> crate::Result<VodCategoryId> {
    let found = write.by::<VodCategory>("name", category_key(kind, name))?.pop();
    if let Some(known) = found {
        return Ok(known.id);
    }
    // Apps look a category up among those of channels too.
    let id = VodCategoryId(write.next_id::<Group>()?);
    write.put(&VodCategory { id, name: name.to_owned(), kind })?;
    Ok(id)
}
