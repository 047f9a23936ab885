//! Collects the sections of all streams that are played into guides of services.

use std::collections::{BTreeMap, BTreeSet};

use super::{GuideSection, ServiceId, read_section};
use crate::guide::marks::with_marks;
use crate::guide::programme::to_xml;

/// Maximum number of services. A satellite has about two thousand.
pub const SERVICES_MAX: usize = 4_000;
/// Maximum number of programmes of all services together. One takes about half a kilobyte.
pub const PROGRAMMES_MAX: usize = 60_000;
/// Maximum number of streams that are remembered with their services.
const ORIGINS_MAX: usize = 4_000;
/// Seconds between two removals of ended programmes while there is no room for more.
const CLEANING_SECONDS: i64 = 60;
/// Maximum number of guide channels of one service.
const KEYS_MAX: usize = 16;

/// The channel or stream that a section was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionOrigin {
    /// Distinguishes it from others.
    pub id: u64,
    /// Key of the guide channel that its own service gets: its id in a programme guide, if it has one.
    pub key: Option<String>,
    /// Its programme number in the tables of the stream.
    pub programme: Option<u16>,
}

/// A programme: its end, and the inside of its XMLTV element.
pub type CollectedProgramme = (i64, Box<str>);

/// The guide of a service, as far as it was collected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceGuide {
    pub name: Option<String>,
    /// Keys of guide channels. Empty for a service that no channel plays.
    pub keys: BTreeSet<String>,
    /// By start.
    pub programmes: BTreeMap<i64, CollectedProgramme>,
}

/// The guides of services.
#[derive(Debug, Default)]
pub struct ServiceGuides {
    services: BTreeMap<ServiceId, ServiceGuide>,
    /// The services of each stream, as its tables name them.
    origins: BTreeMap<u64, BTreeSet<ServiceId>>,
    n_programmes: usize,
    /// Time of the last removal of ended programmes, in Unix seconds.
    cleaned_at: i64,
}

impl ServiceGuides {
    /// Reads a section, and returns whether it changed a guide. `now` is in Unix seconds: programmes that have ended are
    /// left out.
    pub fn read(&mut self, origin: &SectionOrigin, section: &[u8], now: i64) -> bool {
        match read_section(section) {
            Some(GuideSection::Names(names)) => {
                let mut has_changed = false;
                for (service, name) in names {
                    let Some(guide) = self.guide(service) else { continue };
                    has_changed |= guide.name.as_ref() != Some(&name);
                    guide.name = Some(name);
                }
                has_changed
            }
            Some(GuideSection::Events { service, is_of_this_stream, programmes }) => {
                let mut has_changed = is_of_this_stream && self.assign(origin, service);
                for programme in programmes.into_iter().filter(|it| it.stop > now) {
                    let mut xml = String::new();
                    to_xml(&with_marks(&programme), &mut xml);
                    has_changed |= self.put(service, programme.start, (programme.stop, xml.into()), now);
                }
                has_changed
            }
            None => false,
        }
    }

    /// Returns the services with their guides.
    pub fn services(&self) -> impl Iterator<Item = (ServiceId, &ServiceGuide)> {
        self.services.iter().map(|(id, guide)| (*id, guide))
    }

    /// Removes programmes that have ended.
    pub fn forget_ended(&mut self, now: i64) {
        self.cleaned_at = now;
        for guide in self.services.values_mut() {
            guide.programmes.retain(|_, (stop, _)| *stop > now);
        }
        self.n_programmes = self.services.values().map(|it| it.programmes.len()).sum();
    }

    fn guide(&mut self, service: ServiceId) -> Option<&mut ServiceGuide> {
        if self.services.len() >= SERVICES_MAX && !self.services.contains_key(&service) {
            return None;
        }
        Some(self.services.entry(service).or_default())
    }

    /// Notes a service of a stream, and gives the service that the stream plays its key: the one with the number of the
    /// programme, or the only one, because providers number programmes anew and keep the guide.
    fn assign(&mut self, origin: &SectionOrigin, service: ServiceId) -> bool {
        if self.origins.len() >= ORIGINS_MAX && !self.origins.contains_key(&origin.id) {
            self.origins.clear();
        }
        let services = self.origins.entry(origin.id).or_default();
        if services.len() < SERVICES_MAX {
            services.insert(service);
        }
        let is_played = |it: &ServiceId| Some(it.service) == origin.programme;
        let own =
            services.iter().find(|it| is_played(it)).or(services.first().filter(|_| services.len() == 1));
        if own != Some(&service) {
            return false;
        }
        let key = origin.key.clone().unwrap_or_else(|| service.key());
        self.guide(service).is_some_and(|it| it.keys.len() < KEYS_MAX && it.keys.insert(key))
    }

    /// Adds a programme in place of those that overlap it. Returns whether that changed anything.
    fn put(&mut self, service: ServiceId, start: i64, new: CollectedProgramme, now: i64) -> bool {
        if self.n_programmes >= PROGRAMMES_MAX && now - self.cleaned_at >= CLEANING_SECONDS {
            self.forget_ended(now);
        }
        let is_full = self.n_programmes >= PROGRAMMES_MAX;
        let Some(guide) = self.guide(service) else { return false };
        if guide.programmes.get(&start) == Some(&new) {
            return false;
        }
        let n_before = guide.programmes.len();
        guide.programmes.retain(|at, (stop, _)| *stop <= start || *at >= new.0);
        if !is_full || guide.programmes.len() < n_before {
            guide.programmes.insert(start, new);
        }
        let n_now = guide.programmes.len();
        self.n_programmes = self.n_programmes + n_now - n_before;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guide::dvb::testing::{event_section, names_section};

    const NOW: i64 = 1_768_500_000;
    const SERVICE: ServiceId = ServiceId { network: 1, stream: 2, service: 3 };

    fn origin(id: u64, key: Option<&str>, programme: u16) -> SectionOrigin {
        SectionOrigin { id, key: key.map(str::to_owned), programme: Some(programme) }
    }

    fn keys(guides: &ServiceGuides) -> Vec<Vec<&str>> {
        guides.services().map(|(_, it)| it.keys.iter().map(String::as_str).collect()).collect()
    }

    #[test]
    fn a_guide_has_the_programmes_the_name_and_the_key_of_the_channel() {
        let mut guides = ServiceGuides::default();
        let section = event_section(0x4E, SERVICE, &[(NOW, 1_800, "News"), (NOW + 1_800, 600, "Weather")]);
        assert!(guides.read(&origin(1, Some("one.example"), 3), &section, NOW));
        assert!(!guides.read(&origin(1, Some("one.example"), 3), &section, NOW), "nothing is new");
        assert!(guides.read(&origin(1, None, 3), &names_section(&[(SERVICE, "One")]), NOW));
        let (id, guide) = guides.services().next().unwrap();
        assert_eq!((id, guide.name.as_deref()), (SERVICE, Some("One")));
        assert_eq!(keys(&guides), [["one.example"]]);
        let starts: Vec<_> = guide.programmes.iter().map(|(start, it)| (*start, it.0)).collect();
        assert_eq!(starts, [(NOW, NOW + 1_800), (NOW + 1_800, NOW + 2_400)]);
        assert!(guide.programmes[&NOW].1.contains("News"));
    }

    #[test]
    fn the_played_service_has_the_number_of_the_programme_or_is_the_only_one() {
        let other = ServiceId { service: 4, ..SERVICE };
        let section = |service, table| event_section(table, service, &[(NOW, 600, "News")]);
        let mut guides = ServiceGuides::default();
        guides.read(&origin(1, Some("a"), 3), &section(SERVICE, 0x4E), NOW);
        guides.read(&origin(1, Some("a"), 3), &section(other, 0x4E), NOW);
        assert_eq!(keys(&guides), [vec!["a"], vec![]]);
        let mut guides = ServiceGuides::default();
        guides.read(&origin(1, None, 1), &section(SERVICE, 0x50), NOW);
        assert_eq!(keys(&guides), [["dvb-1-2-3"]], "renumbered by the provider");
        let mut guides = ServiceGuides::default();
        guides.read(&origin(1, Some("a"), 3), &section(SERVICE, 0x4F), NOW);
        assert_eq!(keys(&guides), [Vec::<&str>::new()], "of another stream");
    }

    #[test]
    fn a_moved_programme_replaces_those_that_it_overlaps() {
        let mut guides = ServiceGuides::default();
        let from = origin(1, None, 3);
        let mut read = |events: &[(i64, i64, &str)]| {
            guides.read(&from, &event_section(0x50, SERVICE, events), NOW);
            let guide = guides.services().next().unwrap().1;
            guide.programmes.iter().map(|(start, it)| (start - NOW, it.0 - NOW)).collect::<Vec<_>>()
        };
        assert_eq!(read(&[(NOW, 600, "A"), (NOW + 600, 600, "B")]), [(0, 600), (600, 1_200)]);
        assert_eq!(read(&[(NOW + 500, 600, "C")]), [(500, 1_100)]);
        assert_eq!(
            read(&[(NOW - 600, 500, "ended"), (NOW + 1_100, 60, "D")]),
            [(500, 1_100), (1_100, 1_160)]
        );
    }

    #[test]
    fn services_programmes_and_streams_are_bounded() {
        let mut guides = ServiceGuides::default();
        for n in 0..=u16::MAX {
            let service = ServiceId { service: n, ..SERVICE };
            let events: Vec<_> = (0..20).map(|it| (NOW + i64::from(it) * 60, 60, "News")).collect();
            let from = origin(u64::from(n), Some("same"), n);
            if n < 5_000 || n % 1_000 == 0 {
                guides.read(&from, &event_section(0x4E, service, &events), NOW);
            }
        }
        assert_eq!(guides.services().count(), SERVICES_MAX);
        let n_programmes: usize = guides.services().map(|(_, it)| it.programmes.len()).sum();
        assert_eq!((n_programmes, guides.n_programmes), (PROGRAMMES_MAX, PROGRAMMES_MAX));
        guides.forget_ended(NOW + 60);
        assert!(guides.n_programmes < PROGRAMMES_MAX);
        let mut one = ServiceGuides::default();
        for n in 0..100 {
            let section = event_section(0x4E, SERVICE, &[(NOW, 600, "News")]);
            one.read(&origin(n, Some(&n.to_string()), 3), &section, NOW);
        }
        assert_eq!(keys(&one)[0].len(), KEYS_MAX);
    }
}
