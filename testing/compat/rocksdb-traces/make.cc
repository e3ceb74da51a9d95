// Writes the two kinds of trace that RocksDB records, over a workload of a few hundred operations, for the tests of the
// importers: OUT/operations.trace (DB::StartTrace) and OUT/block_cache.trace (DB::StartBlockCacheTrace).
//
//   g++ -std=c++17 make.cc -lrocksdb -o make && ./make /tmp/scratch OUT
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"
#include "rocksdb/trace_reader_writer.h"
#include "rocksdb/utilities/options_util.h"

using namespace rocksdb;

namespace {

// Keeps the operand: merges are there to be seen in the trace.
class Last : public AssociativeMergeOperator {
 public:
  bool Merge(const Slice&, const Slice*, const Slice& value, std::string* out, Logger*) const override {
    *out = value.ToString();
    return true;
  }
  const char* Name() const override { return "Last"; }
};

void check(const Status& status) {
  if (status.ok() || status.IsNotFound()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

std::string key(int number) {
  char text[16];
  std::snprintf(text, sizeof text, "key%05d", number);
  return text;
}

void read_and_write(DB* db) {
  std::string value;
  for (int i = 0; i < 100; i++) check(db->Put(WriteOptions(), key(i * 7 % 100), std::string(20 + i, 'v')));
  for (int i = 0; i < 100; i++) check(db->Get(ReadOptions(), key(i * i % 120), &value));
  for (int i = 0; i < 10; i++) check(db->Delete(WriteOptions(), key(i)));
  check(db->SingleDelete(WriteOptions(), key(99)));
  check(db->Merge(WriteOptions(), key(50), "operand"));
  check(db->DeleteRange(WriteOptions(), db->DefaultColumnFamily(), key(60), key(70)));
  WriteBatch batch;
  check(batch.Put(key(200), "batched"));
  check(batch.Delete(key(30)));
  batch.PutLogData("a note that is no operation");
  check(batch.Put(key(201), "batched too"));
  check(db->Write(WriteOptions(), &batch));
  std::unique_ptr<Iterator> iterator(db->NewIterator(ReadOptions()));
  iterator->Seek(key(40));
  iterator->SeekForPrev(key(45));
  std::vector<std::string> names = {key(1), key(20), key(33)}, values;
  std::vector<Slice> slices(names.begin(), names.end());
  db->MultiGet(ReadOptions(), slices, &values);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string scratch = argv[1], out = argv[2];
  Options options;
  options.create_if_missing = true;
  options.merge_operator = std::make_shared<Last>();
  BlockBasedTableOptions table;
  table.block_size = 1024;
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  check(DestroyDB(scratch, options));
  DB* opened = nullptr;
  check(DB::Open(options, scratch, &opened));
  std::unique_ptr<DB> db(opened);
  std::unique_ptr<TraceWriter> writer;
  check(NewFileTraceWriter(Env::Default(), EnvOptions(), out + "/operations.trace", &writer));
  check(db->StartTrace(TraceOptions(), std::move(writer)));
  read_and_write(db.get());
  check(db->EndTrace());
  check(db->Flush(FlushOptions()));
  check(NewFileTraceWriter(Env::Default(), EnvOptions(), out + "/block_cache.trace", &writer));
  check(db->StartBlockCacheTrace(TraceOptions(), std::move(writer)));
  std::string value;
  for (int i = 0; i < 60; i++) check(db->Get(ReadOptions(), key(i * i % 100), &value));
  std::unique_ptr<Iterator> iterator(db->NewIterator(ReadOptions()));
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
  }
  iterator.reset();
  check(db->EndBlockCacheTrace());
  check(db->Close());
  return 0;
}
