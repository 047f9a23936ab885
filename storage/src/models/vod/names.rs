//! The cleaned names of stored titles, after the rules of the admin changed.

use domain::core_settings::NAME_SETTINGS;
use domain::name_cleaning::NameCleaner;
use domain::setting::CoreSetting;
use domain::vod::{RelationId, Title};

use super::VodTitles;
use super::landing::{LandError, Removed, TitleChange, TitleChanges, apply_all, priorities};
use crate::error::Result;
use crate::store::Store;

/// Reads the rules by which names are cleaned.
pub(super) fn name_cleaner(store: &Store) -> Result<NameCleaner> {
    let setting: Option<CoreSetting> = store.collection().one_by("key", NAME_SETTINGS)?;
    Ok(NameCleaner::from_setting(setting.as_ref().map(|it| &it.value)))
}

/// Returns the relations of a title whose cleaned name is not that of the rules, with that name.
pub(super) fn uncleaned(
    title: &Title,
    cleaner: &NameCleaner,
) -> impl Iterator<Item = (RelationId, Option<String>)> {
    let kind = title.id.kind().into();
    title.relations.iter().filter_map(move |it| {
        let name = cleaner.clean(kind, it.account, &it.facts.name);
        (name != it.clean_name).then_some((it.id, name))
    })
}

impl VodTitles {
    /// Applies the present rules to the names of all titles. Returns the number of relations with another name. Several
    /// commits; blocks. If it is interrupted, the next import of each account does the rest.
    ///
    /// # Errors
    /// The store fails, or `is_stopped` returned true.
    pub fn clean_names(&self, now: i64, is_stopped: &dyn Fn() -> bool) -> Result<u64, LandError> {
        let _only_one = self.landing.lock();
        let cleaner = name_cleaner(&self.store)?;
        let (mut changes, mut n, mut pushed) = (TitleChanges::default(), 0, Ok(()));
        self.while_each(|title| {
            for (relation, name) in uncleaned(&title, &cleaner) {
                if pushed.is_ok() {
                    pushed = changes.push(title.id, TitleChange::Clean { relation, name });
                    n += 1;
                }
            }
            pushed.is_ok() && !is_stopped()
        })?;
        pushed?;
        let priorities = priorities(&self.store)?;
        apply_all(&self.store, &changes, &priorities, now, &mut Removed::default(), is_stopped)?;
        Ok(n)
    }
}
