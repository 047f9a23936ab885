//! The DRM system of a stream, as the options of its playlist name it.
//!
//! The gateway never asks a licence server. It can decrypt a stream only if its playlist contains the key, which only
//! ClearKey does.

use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};
use serde_json::Value;

use crate::entry_details::PlayerOption;
use crate::secret::Secret;

/// Length of a key in hexadecimal digits.
const KEY_DIGITS: usize = 32;
/// Longer texts are not searched for keys, in bytes.
const KEYS_BYTES_MAX: usize = 16 << 10;

/// A system that protects streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrmSystem {
    Widevine,
    PlayReady,
    FairPlay,
    ClearKey,
    /// Another one, or one that is not named.
    Other,
}

/// The protection of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drm {
    pub system: DrmSystem,
    pub keys: DrmKeys,
    /// The options say that the stream is DASH, whatever its address looks like.
    pub is_dash: bool,
}

/// The keys, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrmKeys {
    /// A licence server has them, or nothing is known.
    Elsewhere,
    /// The only one, as 32 hexadecimal digits.
    One(Secret),
    /// Several different ones.
    Several,
}

impl DrmSystem {
    /// Returns the name under which a film or an episode of a playlist keeps its protection.
    pub fn name(self) -> &'static str {
        match self {
            Self::Widevine => "widevine",
            Self::PlayReady => "playready",
            Self::FairPlay => "fairplay",
            Self::ClearKey => "clearkey",
            Self::Other => "other",
        }
    }

    /// Reads the name of a system, however it is written. `None` if the text says that there is none.
    pub fn from_text(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let names = [
            ("widevine", Self::Widevine),
            ("playready", Self::PlayReady),
            ("fairplay", Self::FairPlay),
            ("com.apple.fps", Self::FairPlay),
            ("clearkey", Self::ClearKey),
            ("clear-key", Self::ClearKey),
            ("clear_key", Self::ClearKey),
        ];
        let known = names.into_iter().find(|it| text.contains(it.0)).map(|it| it.1);
        known.or((!matches!(text.as_str(), "" | "none" | "null" | "0")).then_some(Self::Other))
    }
}

/// Returns the protection that the options of a stream name; `None` if they name none.
pub fn drm_of(options: &[PlayerOption]) -> Option<Drm> {
    let (mut system, mut material, mut is_dash) = (None, None, false);
    for PlayerOption { name, value, .. } in options {
        match plain(name).as_str() {
            "licensetype" | "drmscheme" => system = system.or_else(|| DrmSystem::from_text(value)),
            "licensekey" | "drmlicense" | "drmlicenseurl" | "licenseurl" => {
                material = material.or(Some(value.clone()));
            }
            // `SYSTEM|LICENCE|HEADERS`.
            "drmlegacy" => {
                let mut parts = value.split('|');
                system = system.or_else(|| DrmSystem::from_text(parts.next()?));
                material = material.or_else(|| parts.next().map(str::to_owned));
            }
            // `{"SYSTEM": {"license": {"keyids": {"ID": "KEY"}}}}`.
            "drm" => {
                let json: Option<Value> = serde_json::from_str(value).ok();
                let first = json.as_ref().and_then(Value::as_object).and_then(|it| it.iter().next());
                system = system.or_else(|| DrmSystem::from_text(first?.0));
                let keys = first.and_then(|it| it.1.pointer("/license/keyids")).map(Value::to_string);
                material = material.or(keys);
            }
            "manifesttype" => is_dash |= ["mpd", "dash"].iter().any(|it| value.eq_ignore_ascii_case(it)),
            _ => {}
        }
    }
    let keys = material.as_deref().map(keys_of);
    let has_keys = keys.as_ref().is_some_and(|it| *it != DrmKeys::Elsewhere);
    let unnamed = || material.as_ref().map(|_| if has_keys { DrmSystem::ClearKey } else { DrmSystem::Other });
    let system = system.or_else(unnamed)?;
    let keys = keys.filter(|_| system == DrmSystem::ClearKey).unwrap_or(DrmKeys::Elsewhere);
    Some(Drm { system, keys, is_dash })
}

/// Returns the name of an option without the prefix of Kodi's reader, hyphens and underscores.
fn plain(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("inputstream.adaptive.").unwrap_or(&name);
    name.chars().filter(|it| !matches!(it, '-' | '_')).collect()
}

/// Reads keys in any of the forms in use: `ID:KEY,ID:KEY`, a map or a set of keys as JSON, and the latter in Base64.
fn keys_of(text: &str) -> DrmKeys {
    let text = text.trim();
    if text.len() > KEYS_BYTES_MAX {
        return DrmKeys::Elsewhere;
    }
    let decoded = || {
        let base64 = text.rsplit_once("base64,").map_or(text, |it| it.1);
        let bytes = BASE64.decode(base64.as_bytes()).ok()?;
        String::from_utf8(bytes).ok()
    };
    let mut keys = match text.starts_with('{') {
        true => keys_in_json(text),
        false if text.contains("://") => Vec::new(),
        false => {
            let pairs = text.split([',', ';', ' ']).filter_map(|it| it.split_once(':'));
            let keys: Vec<_> = pairs.filter_map(|it| hex_key(it.1)).collect();
            if keys.is_empty() { decoded().map_or(Vec::new(), |it| keys_in_json(&it)) } else { keys }
        }
    };
    keys.sort_unstable();
    keys.dedup();
    match keys.as_slice() {
        [] => DrmKeys::Elsewhere,
        [key] => DrmKeys::One(Secret::new(key.as_str())),
        _ => DrmKeys::Several,
    }
}

/// `{"keys": [{"kid": "…", "k": "…"}]}` with Base64, or `{"ID": "KEY"}`.
fn keys_in_json(text: &str) -> Vec<String> {
    let Ok(Value::Object(map)) = serde_json::from_str(text) else { return Vec::new() };
    match map.get("keys").and_then(Value::as_array) {
        Some(keys) => keys.iter().filter_map(|it| base64_key(it.get("k")?.as_str()?)).collect(),
        None => map.values().filter_map(|it| hex_key(it.as_str()?)).collect(),
    }
}

fn hex_key(text: &str) -> Option<String> {
    let key = text.trim().replace('-', "").to_ascii_lowercase();
    (key.len() == KEY_DIGITS && key.bytes().all(|it| it.is_ascii_hexdigit())).then_some(key)
}

fn base64_key(text: &str) -> Option<String> {
    let text = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
    (bytes.len() * 2 == KEY_DIGITS).then(|| HEXLOWER.encode(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playlist::m3u::{PlaylistItem, PlaylistLimits, parse};

    #[test]
    fn the_name_of_a_system_is_read_as_it_was_written() {
        use DrmSystem::*;
        for system in [Widevine, PlayReady, FairPlay, ClearKey, Other] {
            assert_eq!(DrmSystem::from_text(system.name()), Some(system));
        }
    }

    const ID: &str = "00112233445566778899aabbccddeeff";
    const KEY: &str = "ffeeddccbbaa99887766554433221100";

    /// Returns the protection of an entry with these lines and this end of its address.
    fn read(lines: &str, end: &str) -> Option<Drm> {
        let text = format!("#EXTINF:-1,A\n{lines}\nhttp://h/1.mpd{end}\n");
        let (items, _) = parse(text.as_bytes(), PlaylistLimits::default());
        let options = items.into_iter().find_map(|it| match it {
            PlaylistItem::Entry(entry) => Some(entry.options),
            _ => None,
        });
        drm_of(&options.unwrap())
    }

    #[test]
    fn the_system_is_found_in_every_form() {
        use DrmSystem::*;
        let kodi = "#KODIPROP:inputstream.adaptive.";
        for (lines, end, expected) in [
            (
                format!(
                    "{kodi}license_type=com.widevine.alpha\n{kodi}license_key=https://l.example/?t=1||R{{SSM}}|"
                ),
                "",
                Some(Widevine),
            ),
            (format!("{kodi}license_type=widevine"), "", Some(Widevine)),
            (format!("{kodi}license_type=com.microsoft.playready"), "", Some(PlayReady)),
            (format!("{kodi}drm_legacy=com.widevine.alpha|https://l.example/"), "", Some(Widevine)),
            (
                format!(
                    "{kodi}drm={{\"com.widevine.alpha\":{{\"license\":{{\"server_url\":\"https://l.example\"}}}}}}"
                ),
                "",
                Some(Widevine),
            ),
            (format!("{kodi}license_key=https://l.example/"), "", Some(Other)),
            (format!("{kodi}license_type=none"), "", None),
            (format!("{kodi}manifest_type=mpd"), "", None),
            ("#EXTVLCOPT:drm-scheme=widevine".to_owned(), "", Some(Widevine)),
            (String::new(), "|drmScheme=widevine&drmLicense=https://l.example/?a=b", Some(Widevine)),
            (String::new(), "|drmScheme=fairplay", Some(FairPlay)),
            (String::new(), "|drmScheme=clearkey&drmLicense=https://l.example/", Some(ClearKey)),
            (String::new(), "|User-Agent=x", None),
        ] {
            assert_eq!(read(&lines, end).map(|it| it.system), expected, "{lines} {end}");
        }
    }

    #[test]
    fn a_clear_key_is_read_in_every_form() {
        let base64 = r#"{"keys":[{"kty":"oct","k":"_-7dzLuqmYh3ZlVEMyIRAA","kid":"ABEiM0RVZneImaq7zN3u_w"}],"type":"temporary"}"#;
        for material in [
            format!("{ID}:{KEY}"),
            format!(" {}:{} ", ID.to_uppercase(), KEY.to_uppercase()),
            format!("00112233-4455-6677-8899-aabbccddeeff:{KEY}"),
            format!("{ID}:{KEY},{ID}:{KEY}"),
            format!("{{\"{ID}\":\"{KEY}\"}}"),
            base64.to_owned(),
            BASE64.encode(base64.as_bytes()),
            format!("data:application/json;base64,{}", BASE64.encode(base64.as_bytes())),
        ] {
            for name in ["inputstream.adaptive.license_key", "license_key"] {
                let found = read(&format!("#KODIPROP:{name}={material}"), "").unwrap();
                assert_eq!(found.system, DrmSystem::ClearKey, "{material}");
                assert_eq!(found.keys, DrmKeys::One(Secret::new(KEY)), "{material}");
            }
        }
        let legacy = format!("#KODIPROP:inputstream.adaptive.drm_legacy=org.w3.clearkey|{ID}:{KEY}");
        let json = format!(
            "#KODIPROP:inputstream.adaptive.drm={{\"org.w3.clearkey\":{{\"license\":{{\"keyids\":{{\"{ID}\":\"{KEY}\"}}}}}}}}"
        );
        let pipe = format!("|drmScheme=clearkey&drmLicense={ID}%3A{KEY}");
        for found in [read(&legacy, ""), read(&json, ""), read("", &pipe)] {
            assert_eq!(found.unwrap().keys, DrmKeys::One(Secret::new(KEY)));
        }
    }

    #[test]
    fn other_material_is_not_a_key() {
        let key = |material: &str| {
            read(&format!("#KODIPROP:license_type=clearkey\n#KODIPROP:license_key={material}"), "")
        };
        for (material, expected) in [
            (format!("{ID}:{KEY},{KEY}:{ID}"), DrmKeys::Several),
            ("https://l.example/".to_owned(), DrmKeys::Elsewhere),
            (format!("{ID}:short"), DrmKeys::Elsewhere),
            ("{".to_owned(), DrmKeys::Elsewhere),
            (format!("{ID}:{}", "é".repeat(16)), DrmKeys::Elsewhere),
        ] {
            assert_eq!(key(&material).unwrap().keys, expected, "{material}");
        }
    }
}
