// AXI4-Lite with the ids of masters. A store and its time go on in order, one
// each cycle; no output depends on an input of the same cycle.
//
// A store's time is that of the later of its two handshakes (AW, W).
module axi_lite_slave #(
    parameter int ID_BITS   = 3,
    parameter int ADDR_BITS = 21
) (
    input  logic                 clk,
    input  logic                 rst_n,
    input  logic [63:0]          now,
    // Write address, data and response.
    input  logic                 s_axi_awvalid,
    output logic                 s_axi_awready,
    input  logic [ADDR_BITS-1:0] s_axi_awaddr,
    input  logic [ID_BITS-1:0]   s_axi_awid,
    input  logic [2:0]           s_axi_awprot,
    input  logic                 s_axi_wvalid,
    output logic                 s_axi_wready,
    input  logic [31:0]          s_axi_wdata,
    input  logic [3:0]           s_axi_wstrb,
    output logic                 s_axi_bvalid,
    input  logic                 s_axi_bready,
    output logic [ID_BITS-1:0]   s_axi_bid,
    output logic [1:0]           s_axi_bresp,
    // Read address and data.
    input  logic                 s_axi_arvalid,
    output logic                 s_axi_arready,
    input  logic [ADDR_BITS-1:0] s_axi_araddr,
    input  logic [ID_BITS-1:0]   s_axi_arid,
    output logic                 s_axi_rvalid,
    input  logic                 s_axi_rready,
    output logic [ID_BITS-1:0]   s_axi_rid,
    output logic [31:0]          s_axi_rdata,
    output logic [1:0]           s_axi_rresp,
    // The oldest store that is complete.
    output logic                 store_valid,
    input  logic                 store_ready,
    output logic [ADDR_BITS-1:0] store_address,
    output logic [31:0]          store_data,
    output logic [3:0]           store_strobes,
    output logic [ID_BITS-1:0]   store_master,
    output logic                 store_is_privileged,
    output logic [63:0]          store_time,
    input  logic                 store_is_error,
    // A read, answered in the same cycle.
    output logic                 read_valid,
    output logic [ADDR_BITS-1:0] read_address,
    output logic [ID_BITS-1:0]   read_master,
    input  logic [31:0]          read_data,
    input  logic                 read_is_error
);
  localparam logic [1:0] OKAY = 2'b00;
  localparam logic [1:0] SLVERR = 2'b10;

  // Two stores can be here: enough for one each cycle although `ready` is told
  // a cycle late. Bit 0 of a number is the place; numbers are modulo 4.
  logic [ADDR_BITS-1:0] addresses [0:1];
  logic [ID_BITS-1:0]   masters   [0:1];
  logic                 privileged[0:1];
  logic [31:0]          data      [0:1];
  logic [3:0]           strobes   [0:1];
  logic [63:0]          times     [0:1];
  logic [1:0] next_aw, next_w, oldest;

  wire aw_taken = s_axi_awvalid && s_axi_awready;
  wire w_taken = s_axi_wvalid && s_axi_wready;
  wire store_taken = store_valid && store_ready;
  // Instruction or data, secure or not: nothing that an event says.
  wire unused = ^s_axi_awprot[2:1];

  assign s_axi_awready = (next_aw - oldest) != 2'd2;
  assign s_axi_wready = (next_w - oldest) != 2'd2;
  assign store_valid = next_aw != oldest && next_w != oldest && (!s_axi_bvalid || s_axi_bready);
  assign store_address = addresses[oldest[0]];
  assign store_master = masters[oldest[0]];
  assign store_is_privileged = privileged[oldest[0]];
  assign store_data = data[oldest[0]];
  assign store_strobes = strobes[oldest[0]];
  assign store_time = times[oldest[0]];

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      next_aw      <= 2'd0;
      next_w       <= 2'd0;
      oldest       <= 2'd0;
      s_axi_bvalid <= 1'b0;
      s_axi_bid    <= '0;
      s_axi_bresp  <= OKAY;
      for (int i = 0; i < 2; i++) begin
        addresses[i]  <= '0;
        masters[i]    <= '0;
        privileged[i] <= 1'b0;
        data[i]       <= '0;
        strobes[i]    <= '0;
        times[i]      <= '0;
      end
    end else begin
      // What comes later of a store's two halves leaves its time.
      if (aw_taken) begin
        addresses[next_aw[0]]  <= s_axi_awaddr;
        masters[next_aw[0]]    <= s_axi_awid;
        privileged[next_aw[0]] <= s_axi_awprot[0];
        times[next_aw[0]]      <= now;
        next_aw                <= next_aw + 2'd1;
      end
      if (w_taken) begin
        data[next_w[0]]    <= s_axi_wdata;
        strobes[next_w[0]] <= s_axi_wstrb;
        times[next_w[0]]   <= now;
        next_w             <= next_w + 2'd1;
      end
      if (store_taken) begin
        oldest       <= oldest + 2'd1;
        s_axi_bvalid <= 1'b1;
        s_axi_bid    <= store_master;
        s_axi_bresp  <= store_is_error ? SLVERR : OKAY;
      end else if (s_axi_bready) begin
        s_axi_bvalid <= 1'b0;
      end
    end
  end

  assign s_axi_arready = !s_axi_rvalid;
  assign read_valid = s_axi_arvalid && s_axi_arready;
  assign read_address = s_axi_araddr;
  assign read_master = s_axi_arid;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      s_axi_rvalid <= 1'b0;
      s_axi_rid    <= '0;
      s_axi_rdata  <= 32'd0;
      s_axi_rresp  <= OKAY;
    end else if (read_valid) begin
      s_axi_rvalid <= 1'b1;
      s_axi_rid    <= read_master;
      s_axi_rdata  <= read_data;
      s_axi_rresp  <= read_is_error ? SLVERR : OKAY;
    end else if (s_axi_rready) begin
      s_axi_rvalid <= 1'b0;
    end
  end
`ifdef PROOFS
`include "axi_lite_slave_properties.svh"
`endif
endmodule
