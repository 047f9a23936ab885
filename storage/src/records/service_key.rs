//! Keys of the operator for services.

use domain::core_settings::COMPLETION_SETTINGS;
use domain::plugin::MASK;
use domain::secret::Secret;
use domain::service_key::ServiceKey;
use domain::setting::CoreSetting;
use domain::tmdb::{API_KEY_MEMBER, CompletionSettings};

use crate::error::Result;
use crate::record::{Record, Sharing};
use crate::write::Write;

impl Record for ServiceKey {
    const COLLECTION: &'static str = "service_keys";
    const SHARING: Sharing = Sharing::FullNodes;
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}

/// Sets the key for a service, or removes it.
pub fn set_service_key(write: &mut Write<'_>, id: u32, value: Option<Secret>) -> Result<()> {
    match value {
        Some(value) if write.get::<ServiceKey>(id)?.is_some_and(|it| it.value == value) => Ok(()),
        Some(value) => write.put(&ServiceKey { id, value }),
        None => write.remove::<ServiceKey>(id).map(drop),
    }
}

/// Moves keys that earlier versions kept in settings, which edge nodes have, into records of their own.
pub fn separate_service_keys(write: &mut Write<'_>) -> Result<()> {
    for mut setting in write.by::<CoreSetting>("key", COMPLETION_SETTINGS)? {
        // A mask, which stands for a key that has moved, is not one.
        let key = CompletionSettings::from_setting(Some(&setting.value)).api_key;
        if let (Some(key), Some(members)) = (key, setting.value.as_object_mut()) {
            members.insert(API_KEY_MEMBER.to_owned(), MASK.into());
            set_service_key(write, ServiceKey::TMDB, Some(key))?;
            write.put(&setting)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::models::Models;
    use crate::store::Store;

    /// Returns the key that completions use, and what the settings contain of it.
    fn keys(store: &Store) -> (Option<String>, Option<serde_json::Value>) {
        let models = Models::new(store.clone()).unwrap();
        let used = models.completion_settings().api_key.map(|it| it.expose().to_owned());
        let settings = models.settings.load();
        let setting = settings.one_by("key", COMPLETION_SETTINGS).unwrap();
        (used, setting.value.get(API_KEY_MEMBER).cloned())
    }

    #[test]
    fn a_key_in_the_settings_moves_once_and_is_used_before_and_after() {
        let store = Store::temporary(crate::records::schema()).unwrap();
        let put = |value: serde_json::Value| {
            let setting =
                CoreSetting { id: 4, key: COMPLETION_SETTINGS.to_owned(), name: "x".to_owned(), value };
            store.write_blocking(move |write| write.put(&setting)).unwrap();
        };
        let separate = || store.write_blocking(separate_service_keys).unwrap();
        put(json!({ API_KEY_MEMBER: "abc", "completion_enabled": true }));
        assert_eq!(keys(&store), (Some("abc".to_owned()), Some(json!("abc"))));
        separate();
        assert_eq!(keys(&store), (Some("abc".to_owned()), Some(json!(MASK))));
        assert!(Models::new(store.clone()).unwrap().completion_settings().is_enabled);
        separate();
        assert_eq!(keys(&store).0.as_deref(), Some("abc"), "a second time changes nothing");
        // A back-up of an earlier version brings its key back.
        put(json!({ API_KEY_MEMBER: "def" }));
        separate();
        assert_eq!(keys(&store), (Some("def".to_owned()), Some(json!(MASK))));
    }

    #[test]
    fn the_key_of_a_service_is_set_replaced_and_removed() {
        let store = Store::temporary(crate::records::schema()).unwrap();
        for (value, expected) in [(Some("a"), 1), (Some("a"), 1), (Some("b"), 1), (None, 0), (None, 0)] {
            let key = value.map(Secret::new);
            store.write_blocking(move |write| set_service_key(write, ServiceKey::TMDB, key)).unwrap();
            let all = store.collection::<ServiceKey>().all().unwrap();
            assert_eq!((all.len(), all.first().map(|it| it.value.expose())), (expected, value));
        }
    }
}
