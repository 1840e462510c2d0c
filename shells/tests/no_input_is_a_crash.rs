//! Whatever people write and whatever packets hold, the outcome is a result or an error, never a crash.

mod support;

use std::path::Path;

use proptest::prelude::*;
use shells::element::{Choice, Duplex};
use shells::kernel::address_block::AddressBlock;
use shells::link::LinkSpec;
use shells::log::{Capture, LinkDescription, MahimahiLog, Meter, Outputs, PacketLog};
use shells::packet::{OFFLOAD_BYTES, Offload, Packet};
use shells::queue::{KINDS, LinkFacts, QueueSpec};
use shells::random::{Random, Seed};
use shells::trace::{Rounds, Trace};
use shells::units::{parse_milliseconds, parse_probability, parse_rate_bps, parse_seconds};
use support::{networks, queue_kinds, queues, rates};

/// Text that either matches `pattern`, so that it is nearly valid, or is arbitrary.
fn nearly(pattern: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![pattern, any::<String>()]
}

/// The name of an argument that some queue has.
fn queue_argument_names() -> impl Strategy<Value = &'static str> {
    let names = KINDS.iter().flat_map(|kind| kind.all_parameters()).map(|parameter| parameter.name);
    prop::sample::select(names.collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn numbers(text in nearly("[-+.0-9eEkKmMgG]{0,12}")) {
        let _ = (parse_rate_bps(&text), parse_milliseconds(&text), parse_seconds(&text), parse_probability(&text));
    }

    #[test]
    fn chosen_packets(text in nearly("[0-9.,]{0,20}")) {
        for outcome in [Choice::parse_numbers(&text), Choice::parse_times(&text)] {
            if let Err(error) = outcome {
                prop_assert_eq!(error.to_string().lines().count(), text.lines().count().max(1));
            }
        }
    }

    #[test]
    fn blocks(text in nearly("[0-9]{1,3}(\\.[0-9]{1,3}){3}/[0-9]{1,3}")) {
        if let Ok(block) = text.parse::<AddressBlock>() {
            for candidate in block.for_outermost().take(300).chain(block.for_nested()) {
                prop_assert!(candidate.overlaps(block));
            }
        }
    }

    #[test]
    fn traces(text in nearly("([0-9]{0,10}\n){0,20}"), at in any::<u32>()) {
        if let Ok(trace) = Trace::parse(&text, "fuzzed") {
            let next = trace.first_after(u64::from(at));
            prop_assert!(trace.opportunity(next) > u64::from(at));
        }
    }

    #[test]
    fn queue_arguments(
        kind in queue_kinds(),
        arguments in prop::collection::vec((queue_argument_names(), "[0-9.]{0,6}"), 0..4),
        anything in any::<String>(),
        size in nearly("[0-9.]{0,8}(ms|p|bdp|B)?"),
    ) {
        let facts = LinkFacts { rate_bps: 1e6, header_bytes: 4, rtt: None };
        let arguments: Vec<_> = arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let specs = [
            QueueSpec::parse(kind, &arguments.join(",")),
            QueueSpec::parse(kind, &anything),
            QueueSpec::drop_tail(&size),
        ];
        for spec in specs.into_iter().flatten() {
            let _ = spec.build(facts, Random::from_seed(0));
        }
    }

    #[test]
    fn packets(
        network in networks(),
        packets in prop::collection::vec(
            (prop::array::uniform10(any::<u8>()), prop::collection::vec(any::<u8>(), 0..3000), 0u64..5_000_000),
            1..40,
        ),
    ) {
        let Duplex { mut uplink, .. } = Duplex::stack(network.shells());
        let mut now = 0;
        for (header, bytes, pause) in packets {
            now += pause;
            let header: [u8; OFFLOAD_BYTES] = header;
            uplink.push(Packet::with_offload(Offload::from_bytes(header), &bytes), now);
            while uplink.pop(now).is_some() {}
        }
    }

    #[test]
    fn logs_of_any_packet(
        rate in rates(),
        queue in queues(),
        packets in prop::collection::vec(
            (prop::array::uniform10(any::<u8>()), prop::collection::vec(any::<u8>(), 0..100)),
            1..40,
        ),
    ) {
        let mut outputs = Outputs::default();
        let output = outputs.create(Path::new("/dev/null")).unwrap();
        let [capture, _] = Capture::begin(&output, "test");
        let description = LinkDescription { direction: "Uplink", rate: "", queue: "", start: 0 };
        let link = LinkSpec { rate, queue, rounds: Rounds::Forever, rtt: None };
        let mut link = link
            .build(
                0,
                Seed::new(Some(1)).generator("link"),
                vec![
                    Box::new(MahimahiLog::new(output.clone(), &description)),
                    Box::new(PacketLog::new(output, "up", 0)),
                    Box::new(capture),
                    Box::new(Meter::new(0).uplink()),
                ],
            )
            .unwrap();
        for (number, (header, bytes)) in packets.iter().enumerate() {
            let header: [u8; OFFLOAD_BYTES] = *header;
            link.push(Packet::with_offload(Offload::from_bytes(header), bytes), number as u64 * 100_000);
        }
        while link.pop(1_000_000_000).is_some() {}
        outputs.flush().unwrap();
    }
}
