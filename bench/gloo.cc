/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of Gloo's side of a measurement, over TCP: gloo RANK RANKS DIRECTORY ALGORITHM, where
 * the ranks find each other through files in DIRECTORY. Takes lines, answers each with one JSON
 * object.
 *
 *   fill BYTES SEED      makes the bytes that the rank gives                    {"digest"}
 *   fill-f32 BYTES SEED  the same with an array of gradient.h                   {"digest"}
 *   broadcast AT_NS      gloo::broadcast from rank 0, not before AT_NS          {"spans"}
 *   gather AT_NS         gloo::gather to rank 0                                 {"spans"}
 *   reduce AT_NS         gloo::reduce to rank 0                                 {"spans"}
 *   allreduce AT_NS      with ALGORITHM: default, ring, bcube (of
 *                        gloo::allreduce), ring-chunked, halving-doubling (of
 *                        its older classes)                                     {"spans"}
 *   check                of what was taken                                      {"digests"}
 *
 * A span is [start, end] of the call, CLOCK_MONOTONIC ns; what can be made ready once (buffers, the
 * copy that the older classes work in) is outside of it. A barrier follows each call, outside, too.
 */
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>

#include "gradient.h"
#include "payload.h"

namespace
{

using Run = std::function<void()>;

constexpr auto kPatience = std::chrono::seconds(600);

struct Rank {
	std::shared_ptr<gloo::rendezvous::Context> context;
	std::string algorithm;
	std::vector<float> give, take;
	uint64_t bytes = 0; /* of one object: all of give, but for what fills up the last float */
	std::unique_ptr<gloo::Algorithm> older; /* bound to take */
	int taken = 0; /* objects in take */
	uint32_t tag = 0;
};

void add(void *out, const void *a, const void *b, size_t count)
{
	gloo::sum<float>(out, a, b, count);
}

uint8_t *bytesOf(std::vector<float> &data)
{
	return reinterpret_cast<uint8_t *>(data.data());
}

Run broadcastCall(Rank &r)
{
	auto options = std::make_shared<gloo::BroadcastOptions>(r.context);

	if (r.context->rank == 0)
		options->setOutput(bytesOf(r.give), r.bytes);
	else
		options->setOutput(bytesOf(r.take), r.bytes);
	options->setRoot(0);
	options->setTag(r.tag++);
	r.taken = r.context->rank == 0 ? 0 : 1;
	return [options] { gloo::broadcast(*options); };
}

Run gatherCall(Rank &r)
{
	auto options = std::make_shared<gloo::GatherOptions>(r.context);
	const bool root = r.context->rank == 0;
	const int ranks = r.context->size;

	if (root && r.take.size() != r.give.size() * ranks)
		r.take.assign(r.give.size() * ranks, 0);
	options->setInput(bytesOf(r.give), r.bytes);
	if (root)
		options->setOutput(bytesOf(r.take), r.bytes * ranks);
	options->setRoot(0);
	options->setTag(r.tag++);
	r.taken = root ? ranks : 0;
	return [options] { gloo::gather(*options); };
}

Run reduceCall(Rank &r)
{
	auto options = std::make_shared<gloo::ReduceOptions>(r.context);
	options->setInput(r.give.data(), r.give.size());
	options->setOutput(r.take.data(), r.take.size());
	options->setReduceFunction(add);
	options->setRoot(0);
	options->setTag(r.tag++);
	r.taken = r.context->rank == 0 ? 1 : 0;
	return [options] { gloo::reduce(*options); };
}

Run newerCall(Rank &r)
{
	using Options = gloo::AllreduceOptions;
	auto options = std::make_shared<Options>(r.context);
	options->setInput(r.give.data(), r.give.size());
	options->setOutput(r.take.data(), r.take.size());
	options->setReduceFunction(add);
	options->setAlgorithm(r.algorithm == "bcube" ? Options::Algorithm::BCUBE
						     : Options::Algorithm::RING);
	options->setTag(r.tag++);
	return [options] { gloo::allreduce(*options); };
}

Run allreduceCall(Rank &r)
{
	r.taken = 1;
	if (!r.older)
		return newerCall(r);
	r.take = r.give;
	return [&r] { r.older->run(); };
}

/* The older classes keep pointers into take, so it must not move from here on. */
void bindOlder(Rank &r)
{
	const std::vector<float *> pointers{r.take.data()};
	const int count = static_cast<int>(r.take.size());

	r.older.reset();
	if (r.algorithm == "ring-chunked")
		r.older = std::make_unique<gloo::AllreduceRingChunked<float>>(r.context, pointers,
									      count);
	if (r.algorithm == "halving-doubling")
		r.older = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(r.context,
										  pointers, count);
}

void fill(Rank &r, uint64_t bytes, uint32_t seed, bool f32)
{
	const uint64_t floats = (bytes + sizeof(float) - 1) / sizeof(float);

	r.bytes = bytes;
	r.give.assign(floats, 0);
	r.take.assign(floats, 0);
	if (f32)
		gradient_fill(r.give.data(), r.give.size(), seed);
	else
		payload_fill(bytesOf(r.give), bytes, seed);
	bindOlder(r);
	std::printf("{\"digest\": \"%016llx\"}\n",
		    (unsigned long long)payload_digest(r.give.data(), bytes));
}

void barrier(Rank &r)
{
	gloo::BarrierOptions options(r.context);

	options.setTag(r.tag++);
	gloo::barrier(options);
}

void measure(Rank &r, const Run &run, int64_t at_ns)
{
	payload_sleep_until(at_ns);
	int64_t start_ns = payload_now_ns();
	run();
	int64_t end_ns = payload_now_ns();
	barrier(r);
	std::printf("{\"spans\": [[%lld, %lld]]}\n", (long long)start_ns, (long long)end_ns);
}

void check(Rank &r)
{
	std::printf("{\"digests\": [");
	for (int i = 0; i < r.taken; i++)
		std::printf("%s\"%016llx\"", i ? ", " : "",
			    (unsigned long long)payload_digest(bytesOf(r.take) + i * r.bytes,
							       r.bytes));
	std::printf("]}\n");
}

const std::map<std::string, Run (*)(Rank &)> kCalls = {
	{"broadcast", broadcastCall},
	{"gather", gatherCall},
	{"reduce", reduceCall},
	{"allreduce", allreduceCall},
};

void act(Rank &r, const std::string &line)
{
	std::istringstream words(line);
	std::string verb;
	int64_t first = 0, second = 0;

	words >> verb >> first >> second;
	const auto call = kCalls.find(verb);
	if (verb == "fill" || verb == "fill-f32")
		fill(r, static_cast<uint64_t>(first), static_cast<uint32_t>(second),
		     verb == "fill-f32");
	else if (call != kCalls.end())
		measure(r, call->second(r), first);
	else if (verb == "check")
		check(r);
	else
		std::printf("{\"error\": \"not understood\"}\n");
}

void connect(Rank &r, int rank, int ranks, const char *directory)
{
	gloo::transport::tcp::attr attr;
	attr.iface = "eth0";
	auto device = gloo::transport::tcp::CreateDevice(attr);
	auto store = gloo::rendezvous::FileStore(directory);

	r.context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
	r.context->setTimeout(kPatience);
	r.context->connectFullMesh(store, device);
}

} // namespace

int main(int argc, char **argv)
{
	Rank r;
	std::string line;

	if (argc != 5)
		return 2;
	r.algorithm = argv[4];
	try {
		connect(r, std::atoi(argv[1]), std::atoi(argv[2]), argv[3]);
		payload_precise_timers();
		while (std::getline(std::cin, line)) {
			act(r, line);
			std::fflush(stdout);
		}
	} catch (const std::exception &e) {
		std::cerr << "gloo: " << e.what() << "\n";
		return 1;
	}
	return 0;
}
