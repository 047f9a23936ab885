//! Manifests of plugins: no text panics, and what was accepted keeps its limits.

#![no_main]

use domain::plugin::{ACTION_SECONDS, MANIFEST_BYTES_MAX, Manifest, PluginSettings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| {
    let Ok(manifest) = Manifest::parse(content) else { return };
    assert!(content.len() <= MANIFEST_BYTES_MAX);
    assert!((1..=8).contains(&manifest.concurrency) && !manifest.name.is_empty());
    assert!(manifest.actions.iter().flatten().all(|it| ACTION_SECONDS.contains(&it.timeout_s)));
    assert!(manifest.permissions.beyond(&manifest.permissions).is_empty(), "granted permissions suffice");
    let fields = manifest.fields.unwrap_or_default();
    let defaults = PluginSettings::default().with_defaults(&fields);
    // What was accepted is accepted again: clients send all settings back.
    if let Ok(saved) = PluginSettings::default().replaced(defaults, &fields) {
        let masked = saved.masked(&fields);
        let again = saved.replaced(masked, &fields).expect("masked settings are accepted");
        assert_eq!(again.with_defaults(&fields), saved.with_defaults(&fields));
    }
});
