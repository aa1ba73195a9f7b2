// The upper halves of 64-bit registers, as they were when the lower half was
// read: one for each master, so that two that read at once disturb no reading.
module read_latch #(
    parameter int ID_BITS = 3
) (
    input  logic               clk,
    input  logic               rst_n,
    input  logic               capture,
    input  logic [ID_BITS-1:0] master,
    input  logic [31:0]        upper,
    output logic [31:0]        latched
`ifdef PROOFS
    ,
    output logic [2**ID_BITS*32-1:0] f_latches
`endif
);
  logic [31:0] latches[0:2**ID_BITS-1];

  assign latched = latches[master];

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      for (int i = 0; i < 2 ** ID_BITS; i++) latches[i] <= 32'd0;
    end else if (capture) begin
      latches[master] <= upper;
    end
  end
`ifdef PROOFS
  always_comb for (int i = 0; i < 2 ** ID_BITS; i++) f_latches[i*32+:32] = latches[i];
`endif
endmodule
