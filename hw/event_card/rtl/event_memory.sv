// One write and one read a cycle; what is read is there in the next cycle and
// stays. Without a reset, so that it becomes block memory.
module event_memory #(
    parameter int LOG2 = 9,
    parameter int BITS = 120
) (
    input  logic            clk,
    input  logic            write,
    input  logic [LOG2-1:0] write_place,
    input  logic [BITS-1:0] write_data,
    input  logic            read,
    input  logic [LOG2-1:0] read_place,
    output logic [BITS-1:0] read_data
`ifdef PROOFS
    ,
    output logic [2**LOG2*BITS-1:0] f_words
`endif
);
  logic [BITS-1:0] words[0:2**LOG2-1];

  always_ff @(posedge clk) begin
    if (write) words[write_place] <= write_data;
    if (read) read_data <= words[read_place];
  end
`ifdef PROOFS
  always_comb for (int i = 0; i < 2 ** LOG2; i++) f_words[i*BITS+:BITS] = words[i];
`endif
endmodule
